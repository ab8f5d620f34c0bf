package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// WriteJSON writes the report as an indented document with one line per value that fits: a token, a row of counts. The
// order of fields is fixed.
func (r *Report) WriteJSON(w io.Writer) error {
	var compact bytes.Buffer
	if err := clean.NewEncoder(&compact).Encode(r); err != nil {
		return err
	}
	l := writer{bufio.NewWriter(w)}
	l.json(bytes.TrimSpace(compact.Bytes()), 0)
	l.WriteByte('\n')
	return l.Flush() // the first error sticks
}

// WriteJSONL writes one line per request, as in the JSON document.
func (r *Report) WriteJSONL(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := clean.NewEncoder(b)
	var err error
	r.eachReport(func(r *Report, _ string) {
		for q := range r.all() {
			err = cmp.Or(err, e.Encode(q))
		}
	})
	return cmp.Or(err, b.Flush())
}

// Stageless reports whether WriteStagesCSV would have no stages to write. Reports from Read have none, since the
// document has only their sums.
func (r *Report) Stageless() bool {
	some := false
	r.eachReport(func(r *Report, _ string) {
		for q := range r.all() {
			some = some || len(q.stages) > 0
		}
	})
	return !some
}

// WriteCSV writes the points of a benchmark, or the numbers of servers with aggregate metrics. For any other run it
// writes one row per request, with the names and units of the JSON document.
func (r *Report) WriteCSV(w io.Writer) error {
	switch {
	case r.Bench != nil:
		return writeBenchCSV(r, w)
	case r.servers():
		return writeReportedCSV(r, w)
	}
	return writeRequestsCSV(r, w)
}

// WriteStagesCSV writes one row per stage: first the parts of the model load, then for each request its stages in the
// order in which they ended. The TTFT components of a request, including "other", add up to its TTFT; the other rows
// are parts of these (lm_head, sample, and attention, router and experts over all layers) or the pacing. Times have a
// resolution of 1 ns.
func (r *Report) WriteStagesCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	row := func(name string, ns int64) {
		_ = c.Write([]string{textCell(name), strconv.FormatFloat(float64(ns)/1e3, 'f', -1, 64)})
	}
	_ = c.Write([]string{"stage", "elapsed_us"}) // the first error sticks
	r.eachReport(func(r *Report, _ string) {
		if r.Model != nil {
			for _, l := range r.Model.Load {
				if l.stage != event.StageLoad { // the request that waited for it has the row
					row(l.Stage, l.ns)
				}
			}
		}
		for q := range r.all() {
			for _, s := range q.stages {
				row(s.Stage.Component(), int64(s.Dur))
			}
		}
	})
	c.Flush()
	return c.Error()
}

// WriteText writes a summary for people in plain ASCII, for any terminal.
func (r *Report) WriteText(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	writeHead(r, w)
	for _, s := range bodySections(r) {
		w.section(s)
	}
	if r.Bench == nil {
		for i := range r.Requests[:min(len(r.Requests), drawn)] {
			r.Requests[i].writeParts(w)
		}
		r.Reported.writeParts(w)
	}
	writeFindings(r.Verdicts, w)
	return w.Flush() // the first error sticks
}

// WriteSummary writes what matters most of WriteText: about 20 lines, or 30 of a benchmark.
func (r *Report) WriteSummary(out io.Writer) error {
	must, more := briefSections(r)
	body := rendered(func(w writer) {
		writeHead(r, w)
		for _, s := range filled(must) {
			w.section(s)
		}
	})
	end := rendered(func(w writer) { writeFindings(worstFindings(r), w) })
	most := briefLines
	if r.Bench != nil {
		most = briefBenchLines
	}
	for _, s := range filled(more) {
		text := rendered(func(w writer) { w.section(s) })
		if strings.Count(body+text+end, "\n") <= most {
			body += text
		}
	}
	_, err := io.WriteString(out, body+end)
	return err
}

// WriteMarkdown writes a summary as Markdown with tables, for comments and wikis.
func (r *Report) WriteMarkdown(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	for _, s := range append(append([]section{headSection(r)}, bodySections(r)...), verdictsSection(r)) {
		w.markdown(s)
	}
	return w.Flush() // the first error sticks
}

// WriteHTML writes the summary as one self-contained page with charts: no scripts, fonts or network access. Text from
// outside is cleaned and escaped.
func (r *Report) WriteHTML(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	w.pageHead(clean.Line("llmtop: "+documentName(r)), kpis(r))
	w.pageSection(headSection(r))
	w.pageSection(verdictsSection(r))
	if charts := allCharts(r); len(charts) > 0 {
		w.put("<div class=\"charts\">\n")
		for _, c := range charts {
			w.pageChart(c)
		}
		w.put("</div>\n")
	}
	for _, s := range bodySections(r) {
		w.pageSection(s)
	}
	w.put("</body>\n</html>\n")
	return w.Flush() // the first error sticks
}
