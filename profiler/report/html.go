package report

import (
	_ "embed"
	"fmt"
	"html"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// style is the appearance of the page.
//
//go:embed report.css
var style string

// put writes HTML with arguments as fmt.Fprintf does. Strings among them are escaped, for text and quoted attributes.
// Functions write it instead of a template of html/template, because that calls methods by their names: a program that
// contains it keeps every exported method of all its types, 3 MB of them.
func (w writer) put(markup string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = html.EscapeString(text)
		}
	}
	fmt.Fprintf(w, markup, args...)
}

// attribute writes an attribute unless it is empty.
func (w writer) attribute(name, value string) {
	if value != "" {
		w.put(` %s="%s"`, name, value)
	}
}

func (w writer) pageHead(title string, numbers [][3]string) {
	w.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>%s</title>
<style>
`, title)
	w.WriteString(style)
	w.put("</style>\n</head>\n<body>\n<h1>%s</h1>\n", title)
	if len(numbers) == 0 {
		return
	}
	w.put("<dl class=\"kpis\">\n")
	for _, n := range numbers {
		w.put("<div><dt>%s</dt><dd>%s</dd><small>%s</small></div>\n", n[0], n[1], n[2])
	}
	w.put("</dl>\n")
}

func (w writer) pageSection(s section) {
	w.put("<h2>%s</h2>\n", clean.Line(s.title))
	for _, words := range s.words {
		w.put("<p>%s</p>\n", clean.Line(words))
	}
	if len(s.rows) == 0 {
		return
	}
	w.put("<div class=\"scroll\"><table>\n<thead>")
	w.pageRow("th", s.header, s.left)
	w.put("</thead>\n<tbody>\n")
	for _, row := range s.rows {
		w.pageRow("td", row, s.left)
	}
	w.put("</tbody></table></div>\n")
}

// pageRow writes cells of a table, of which the first left are text and the others numbers.
func (w writer) pageRow(tag string, cells []string, left int) {
	w.put("<tr>")
	for i, text := range cells {
		class := ""
		if i < left {
			class = "left"
		}
		w.put("<%s", tag)
		w.attribute("class", class)
		w.put(">%s</%s>", clean.Line(text), tag)
	}
	w.put("</tr>\n")
}

func (w writer) pageChart(c chart) {
	w.put("<figure")
	if c.Wide {
		w.attribute("class", "wide")
	}
	w.put("><figcaption>%s <small>%s</small></figcaption>\n", c.Title, c.Note)
	if len(c.Key) > 0 {
		w.put("<ul>")
		for _, k := range c.Key {
			w.put(`<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="%s" width="10" height="10"/></svg>%s</li>`, k[0], k[1])
		}
		w.put("</ul>\n")
	}
	w.put("<svg viewBox=\"0 0 %v %v\" role=\"img\" aria-label=\"%s\">\n", c.Width, c.Height, c.Title)
	if c.Axis > 0 {
		w.put("<line class=\"axis\" x1=\"10\" y1=\"%v\" x2=\"%v\" y2=\"%v\"/>\n", c.Axis, c.Width-10, c.Axis)
	}
	for _, b := range c.Boxes {
		w.put("<rect")
		w.attribute("class", b.Class)
		w.attribute("fill", b.Fill)
		w.put(" x=\"%v\" y=\"%v\" width=\"%v\" height=\"%v\"><title>%s</title></rect>\n", b.X, b.Y, b.W, b.H, b.Text)
	}
	for _, l := range c.Labels {
		w.put("<text")
		w.attribute("class", l.Class)
		w.put(" x=\"%v\" y=\"%v\" text-anchor=\"%s\">%s</text>\n", l.X, l.Y, l.Anchor, l.Text)
	}
	w.put("</svg></figure>\n")
}

// documentName returns a short title: the model, or the engine.
func documentName(r *Report) string {
	if r.Model == nil {
		return r.Engine.Name
	}
	return r.Model.Name + withSpace(r.Model.Quantisation)
}

// kpis returns the names, values and notes of the key numbers that the report has, with what their targets were.
func kpis(r *Report) (out [][3]string) {
	for _, id := range []store.LatencyID{store.TTFT, store.ITL, store.TPOT, store.E2EL} {
		if l := r.Latency(id); l != nil {
			if cells := l.cells("p50", "p99"); cells[0] != "-" {
				out = append(out, [3]string{id.Row().Name + " p50", cells[0], "p99 " + cells[1]})
			}
		}
	}
	if v, ok := r.Totals.TTPS.Positive(); ok {
		out = append(out, [3]string{"Output", metric.Rate(v) + " tokens/s", "all requests, whole run"})
	}
	if n := r.Totals.Finished; n.OK() {
		k := [3]string{"Requests", metric.Count(n.V), "finished"}
		for _, not := range []struct {
			n    event.Reading
			name string
		}{{r.Totals.Failed, "failed"}, {r.Totals.Cancelled, "cancelled"}, {r.Totals.Unseen, "with an unseen end"}} {
			if v, ok := not.n.Positive(); ok {
				k[2] += fmt.Sprintf(", %s %s", metric.Count(v), not.name)
			}
		}
		out = append(out, k)
	}
	return append(out, targetKPIs(r)...)
}

// targetKPIs returns the share of the requests that met each target of the configuration.
func targetKPIs(r *Report) (out [][3]string) {
	targets, _ := store.ParseTargets(r.Configuration["slo"]) // none in the report of another program
	t := tally{targets: targets}
	for i := range r.Requests {
		if q := &r.Requests[i]; !q.Probe && !q.Cold && !q.Polled {
			t.add(q)
		}
	}
	c := t.compliance()
	for _, met := range []struct {
		name   string
		share  event.Reading
		target time.Duration
	}{{"TTFT", c.TTFT, t.targets.TTFT}, {"first answer token", c.Answer, t.targets.Answer}, {"TPOT", c.TPOT, t.targets.TPOT}, {"E2EL", c.E2EL, t.targets.E2EL}} {
		if met.share.OK() {
			out = append(out, [3]string{met.name + " target met", metric.Percent(met.share.V), "of warm requests; target " + metric.Seconds(met.target.Seconds())})
		}
	}
	return out
}
