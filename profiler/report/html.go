package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

//go:embed report.html.tmpl
var page string

// pageTemplate parses the template on first use, since most runs write no page.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(page)) })

// documentName returns a short title: the model, or the engine.
func documentName(r *Report) string {
	if r.Model == nil {
		return r.Engine.Name
	}
	return r.Model.Name + withSpace(r.Model.Quantisation)
}

// kpi is a key number of the summary.
type kpi struct {
	Name, Value, Note string
}

// kpis returns the key numbers that the report has, with what their targets were.
func kpis(r *Report) (out []kpi) {
	for id, d := range r.Percentiles {
		if name := store.Latencies[id].Name; d != nil && d.P50.OK() && slices.Contains([]string{"TTFT", "TPOT", "ITL", "E2EL"}, name) {
			out = append(out, kpi{name + " p50", short(d.P50, metric.Seconds), "p99 " + short(d.P99, metric.Seconds)})
		}
	}
	if v, ok := r.Totals.TTPS.Positive(); ok {
		out = append(out, kpi{"Output", metric.Rate(v) + " tokens/s", "all requests, whole run"})
	}
	if n := r.Totals.Finished; n.OK() {
		k := kpi{"Requests", metric.Count(n.V), "finished"}
		for _, not := range []struct {
			n    Number
			name string
		}{{r.Totals.Failed, "failed"}, {r.Totals.Cancelled, "cancelled"}} {
			if v, ok := not.n.Positive(); ok {
				k.Note += fmt.Sprintf(", %s %s", metric.Count(v), not.name)
			}
		}
		out = append(out, k)
	}
	return append(out, targetKPIs(r)...)
}

// targetKPIs returns the share of the requests that met each target of the configuration.
func targetKPIs(r *Report) (out []kpi) {
	t := tally{targets: Targets{TTFT: r.target("ttft-target"), TPOT: r.target("tpot-target"), E2EL: r.target("e2el-target")}}
	for i := range r.Requests {
		if q := &r.Requests[i]; !q.Probe && !q.Cold && !q.Polled {
			t.add(q)
		}
	}
	c := t.compliance()
	for _, met := range []struct {
		name   string
		share  Number
		target float64
	}{{"TTFT", c.TTFT, t.targets.TTFT}, {"TPOT", c.TPOT, t.targets.TPOT}, {"E2EL", c.E2EL, t.targets.E2EL}} {
		if met.share.OK() {
			out = append(out, kpi{met.name + " target met", metric.Percent(met.share.V), "of warm requests; target " + metric.Seconds(met.target)})
		}
	}
	return out
}

// target returns a target of the configuration in s, 0 without one.
func (r *Report) target(flag string) float64 {
	d, err := time.ParseDuration(r.Configuration[flag])
	if err != nil {
		return 0
	}
	return d.Seconds()
}

// pageSection is a section as the template needs it.
type pageSection struct {
	Title  string
	Words  []string
	Header []string
	Left   int // text columns
	Rows   [][]pageCell
}

type pageCell struct {
	Text string
	Left bool // text; otherwise a number
}

// pageSections cleans sections for the template.
func pageSections(sections []section) []pageSection {
	out := make([]pageSection, 0, len(sections))
	for _, s := range sections {
		p := pageSection{Title: clean.Line(s.title), Left: s.left}
		for _, words := range s.header {
			p.Header = append(p.Header, clean.Line(words))
		}
		for _, words := range s.words {
			p.Words = append(p.Words, clean.Line(words))
		}
		for _, row := range s.rows {
			cells := make([]pageCell, len(row))
			for i, text := range row {
				cells[i] = pageCell{clean.Line(text), i < s.left}
			}
			p.Rows = append(p.Rows, cells)
		}
		out = append(out, p)
	}
	return out
}
