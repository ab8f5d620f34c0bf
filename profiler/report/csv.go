package report

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Stageless reports whether there are no stages for WriteCSV to write: Read does not bring them back, since the document has their sums alone.
func (r *Report) Stageless() bool {
	return r.Bench == nil && r.Reported == nil && r.Fleet == nil && !slices.ContainsFunc(r.Requests, func(q Request) bool { return len(q.stages) > 0 })
}

// WriteCSV writes the points of a benchmark, and of a server that tells of itself in sum its numbers. Of any other run it writes one row a stage: first the parts of the model load, then request by request its stages in the order in which
// they ended. The rows of a request that are TTFT components, "other" among them, add up to its TTFT; the others are parts of
// these (lm_head, sample, and attention, router and experts over all layers) or the time paced. Times have the resolution of ns.
func (r *Report) WriteCSV(w io.Writer) error {
	if r.Bench != nil {
		return r.writeBenchCSV(w)
	}
	if r.Reported != nil || r.Fleet != nil {
		return r.writeReportedCSV(w)
	}
	b := bufio.NewWriter(w)
	row := func(name string, ns int64) {
		if strings.ContainsAny(name, ",\"\r\n") { // an engine may call its own stages what it likes
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		b.WriteString(name + "," + strconv.FormatFloat(float64(ns)/1e3, 'f', -1, 64) + "\n")
	}
	b.WriteString("stage,elapsed_us\n")
	if r.Model != nil {
		for _, l := range r.Model.Load {
			if l.stage != event.StageLoad { // it is a row of the request that waited for it
				row(l.Stage, l.ns)
			}
		}
	}
	for i := range r.Requests {
		for _, s := range r.Requests[i].stages {
			row(partName(s.stage), int64(s.dur))
		}
	}
	return b.Flush() // the first error sticks
}
