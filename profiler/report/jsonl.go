package report

import (
	"bufio"
	"encoding/json"
	"io"
)

// WriteJSONL writes one line a request, each of them as the document has it, for tools that read line by line.
func (r *Report) WriteJSONL(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	of := []*Report{r}
	if r.Fleet != nil {
		for i := range r.Fleet.Replicas {
			of = append(of, r.Fleet.Replicas[i].Report)
		}
	}
	for _, r := range of {
		for i := range r.Requests {
			if err := e.Encode(&r.Requests[i]); err != nil {
				return err
			}
		}
	}
	return b.Flush()
}
