package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Stageless reports whether WriteCSV would have no stages to write. Reports from Read have none, since the document has
// only their sums.
func (r *Report) Stageless() bool {
	return r.Bench == nil && r.Reported == nil && r.Fleet == nil && !slices.ContainsFunc(r.Requests, func(q Request) bool { return len(q.stages) > 0 })
}

// WriteCSV writes the points of a benchmark, or the numbers of a server with aggregate metrics. For any other run it
// writes one row per stage: first the parts of the model load, then for each request its stages in the order in which
// they ended. The TTFT components of a request, including "other", add up to its TTFT; the other rows are parts of
// these (lm_head, sample, and attention, router and experts over all layers) or the pacing. Times have a resolution of
// 1 ns.
func (r *Report) WriteCSV(w io.Writer) error {
	if r.Bench != nil {
		return r.writeBenchCSV(w)
	}
	if r.Reported != nil || r.Fleet != nil {
		return r.writeReportedCSV(w)
	}
	c := csv.NewWriter(w)
	row := func(name string, ns int64) {
		_ = c.Write([]string{textCell(name), strconv.FormatFloat(float64(ns)/1e3, 'f', -1, 64)})
	}
	_ = c.Write([]string{"stage", "elapsed_us"}) // the first error sticks
	if r.Model != nil {
		for _, l := range r.Model.Load {
			if l.stage != event.StageLoad { // the request that waited for it has the row
				row(l.Stage, l.ns)
			}
		}
	}
	for i := range r.Requests {
		for _, s := range r.Requests[i].stages {
			row(partName(s.stage), int64(s.dur))
		}
	}
	c.Flush()
	return c.Error()
}

// textCell returns a text cell in plain ASCII. Spreadsheets run cells that start with = + - @ as formulas, so it puts a
// ' before them, which marks text. Numbers are never text here.
func textCell(s string) string {
	s = plain(s)
	if trimmed := strings.TrimLeft(s, " "); trimmed != "" && strings.IndexByte("=+-@", trimmed[0]) >= 0 {
		return "'" + s
	}
	return s
}
