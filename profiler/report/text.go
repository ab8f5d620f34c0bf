package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// listed is how many requests the text names one by one, and drawn of how many it shows where TTFT went; JSON has them all.
const listed, drawn = 20, 4

// barCells is the length of the bar for all of a request's TTFT.
const barCells = 30

// writer writes lines of plain ASCII.
type writer struct{ *bufio.Writer }

// line writes one line; whatever came from outside is made harmless here.
func (w writer) line(format string, args ...any) {
	w.WriteString(strings.TrimRight(plain(fmt.Sprintf(format, args...)), " ") + "\n")
}

// title begins a section.
func (w writer) title(format string, args ...any) {
	w.WriteString("\n")
	w.line(format, args...)
}

// plain is a text without control characters and in ASCII: what has no ASCII form becomes "?".
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'µ':
			return 'u'
		case r == '·':
			return '-'
		case r < ' ' || r == 0x7f:
			return ' '
		case r > 0x7f:
			return '?'
		}
		return r
	}, strings.ReplaceAll(s, "±", "+-"))
}

// format is a number as f writes it, or the word for its absence.
func format(n Number, f func(float64) string) string {
	if !n.OK() {
		return n.why()
	}
	return f(n.V)
}

// WriteText writes a summary for people and for terminals of any kind: plain ASCII.
func (r *Report) WriteText(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	r.writeHead(w)
	for _, s := range r.body() {
		w.section(s)
	}
	if r.Bench == nil {
		for i := range r.Requests[:min(len(r.Requests), drawn)] {
			r.Requests[i].writeParts(w)
		}
		r.Reported.writeParts(w)
	}
	r.writeFindings(w)
	return w.Flush() // the first error sticks
}

func (r *Report) writeHead(w writer) {
	if f := r.Fleet; f != nil {
		w.line("llmtop %s - %s", r.Version, f.count(r.Engine.Name))
	} else {
		w.line("llmtop %s - engine %s, %s", r.Version, r.Engine.where(), r.Engine.State)
	}
	if m := r.Model; m != nil {
		w.line("model %s", strings.Join(append([]string{m.Name + spaced(m.Quantisation)}, m.shape()...), ", "))
	}
	requests, tokens := r.Totals.words()
	w.line("requests %s", requests)
	w.line("tokens   %s, in %s", tokens, format(r.Totals.Duration, metric.Seconds))
	for _, words := range r.notes() {
		w.words("  ", words)
	}
}

// where is the engine and, if that is known, what it computes on.
func (e *Engine) where() string {
	if e.Device == "" {
		return cmp.Or(e.Name, "unknown") + spaced(e.Version)
	}
	return e.Name + " on " + e.Device + spaced(e.Kernels)
}

// shape is what is known of a model's size and form, in words.
func (m *Model) shape() (known []string) {
	for _, part := range []struct {
		n     Number
		f     func(float64) string
		words string
	}{{m.Parameters, metric.Count, " parameters"}, {m.Bytes, metric.Bytes, ""}, {m.Layers, metric.Count, " layers"}} {
		if part.n.OK() {
			known = append(known, part.f(part.n.V)+part.words)
		}
	}
	switch {
	case m.Experts.V > 0:
		known = append(known, fmt.Sprintf("%s experts, %s used", whole(m.Experts), whole(m.ExpertsUsed)))
	case m.Architecture != nil && m.Experts.OK():
		known = append(known, "dense")
	}
	return known
}

func spaced(s *string) string {
	if s == nil {
		return ""
	}
	return " " + *s
}

// short is a number in a column: "-" where it is absent.
func short(n Number, f func(float64) string) string {
	if !n.OK() {
		return "-"
	}
	return f(n.V)
}

// writeParts draws where a request's TTFT went.
func (q *Request) writeParts(w writer) {
	if len(q.Parts) == 0 || !q.TTFT.OK() {
		return
	}
	kind := "warm"
	if q.Cold {
		kind = "cold, model load included"
	}
	w.title("TTFT of request %d: %s (%s)", q.ID, metric.Seconds(q.TTFT.V), kind)
	dominant := ""
	if q.Dominant != nil {
		dominant = *q.Dominant
	}
	w.bars(q.Parts, q.TTFT.V, dominant)
}

// writeParts draws where the mean TTFT of a server went, by its own histograms.
func (r *Reported) writeParts(w writer) {
	parts, total, longest := r.divided(), 0.0, Part{}
	for _, p := range parts {
		total += p.Time.V
		if p.Time.V > longest.Time.V {
			longest = p
		}
	}
	if total > 0 {
		w.title("Mean TTFT as the server counts it: %s", metric.Seconds(total))
		w.bars(parts, total, longest.Name)
	}
}

// bars draws parts of a whole.
func (w writer) bars(parts Parts, total float64, dominant string) {
	for _, p := range parts {
		share, mark := 0.0, ""
		if total > 0 {
			share = p.Time.V / total
		}
		if p.Name == dominant {
			mark = "  <- dominant"
		}
		w.line("  %-15s %9s %6s  %s%s", p.Name, metric.Seconds(p.Time.V), metric.Percent(share),
			strings.Repeat("#", int(share*barCells+0.5)), mark)
	}
}

// perSecond is a rate of tokens with its unit, or the word for its absence.
func perSecond(n Number) string {
	if !n.OK() {
		return n.why()
	}
	return metric.Rate(n.V) + " tokens/s"
}

func median(d *Distribution) string {
	if d == nil {
		return event.NotYet.String()
	}
	return metric.Seconds(d.P50.V)
}

// describe is what is known of the machine, in a line.
func (m *Machine) describe() string {
	var known []string
	if m.OS != nil && m.Arch != nil {
		known = append(known, *m.OS+"/"+*m.Arch)
	}
	if m.Cores != nil {
		known = append(known, strings.TrimSpace(fmt.Sprintf("%d cores%s", *m.Cores, spaced(m.CPU))))
	}
	if len(known) == 0 {
		return "not reported"
	}
	return strings.Join(known, ", ")
}

// section writes a table, then its words.
func (w writer) section(s section) {
	w.title("%s", strings.ToUpper(s.title))
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, row := range append([][]string{s.header}, s.rows...) {
		if i == 0 && strings.Join(row, "") == "" || len(s.rows) == 0 {
			continue
		}
		cells := make([]string, len(row))
		for c, words := range row {
			cells[c] = plain(words)
		}
		fmt.Fprintln(t, "  "+strings.Join(cells, "\t"))
	}
	_ = t.Flush() // a Builder takes everything
	for line := range strings.Lines(b.String()) {
		w.line("%s", strings.TrimSuffix(line, "\n"))
	}
	for _, words := range s.words {
		w.words("  ", words)
	}
}

// proseWidth is from where on a line of words goes on in the next one.
const proseWidth = 110

// words writes a sentence after what stands before its first line.
func (w writer) words(before, s string) {
	line, next := before, strings.Repeat(" ", len(before)+2)
	for word := range strings.FieldsSeq(s) {
		if len(line)+len(word) > proseWidth && strings.TrimSpace(line) != "" && word[0] != '%' {
			w.line("%s", line)
			line = next
		}
		line += word + " "
	}
	w.line("%s", line)
}

func (r *Report) writeFindings(w writer) {
	all := r.findings()
	if len(all) == 0 {
		return
	}
	w.title("WHAT TO KNOW")
	for _, v := range all {
		w.words(fmt.Sprintf("  %-5s  ", v.Severity), v.Text+withEvidence(v.Evidence))
		if v.Try != "" {
			w.words("         try: ", v.Try)
		}
	}
}
