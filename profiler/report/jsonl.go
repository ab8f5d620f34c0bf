package report

import (
	"bufio"
	"io"

	"github.com/llmtop/llmtop/profiler/clean"
)

// WriteJSONL writes one line per request, as in the JSON document.
func (r *Report) WriteJSONL(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := clean.NewEncoder(b)
	reports := []*Report{r}
	if r.Fleet != nil {
		for i := range r.Fleet.Replicas {
			reports = append(reports, r.Fleet.Replicas[i].Report)
		}
	}
	for _, r := range reports {
		for i := range r.Requests {
			if err := e.Encode(&r.Requests[i]); err != nil {
				return err
			}
		}
	}
	return b.Flush()
}
