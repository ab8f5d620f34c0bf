package report

import (
	"bufio"
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// listed is how many requests the text lists, drawn of how many it draws the TTFT components; JSON has all.
const listed, drawn = 20, 4

// barCells is the length of a bar for the whole TTFT, in characters.
const barCells = 30

// writer writes lines of plain ASCII.
type writer struct{ *bufio.Writer }

// line writes one line and cleans text from outside.
func (w writer) line(format string, args ...any) {
	w.WriteString(strings.TrimRight(plain(fmt.Sprintf(format, args...)), " ") + "\n")
}

// title starts a section.
func (w writer) title(format string, args ...any) {
	w.WriteString("\n")
	w.line(format, args...)
}

// asciiForms replaces characters that have an ASCII form.
var asciiForms = strings.NewReplacer("µ", "u", "·", "-", "±", "+-", "→", "->")

// plain returns a text as one line of ASCII: characters without an ASCII form become "?".
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r > 0x7f {
			return '?'
		}
		return r
	}, asciiForms.Replace(clean.Line(s)))
}

// format formats a number with f, or returns the reason for its absence.
func format(n event.Reading, f func(float64) string) string {
	if !n.OK() {
		return n.Absence()
	}
	return f(n.V)
}

func writeHead(r *Report, w writer) {
	if f := r.Fleet; f != nil {
		w.line("llmtop %s - %s", r.Version, f.summary(r.Engine.Name))
	} else {
		w.line("llmtop %s - engine %s, %s", r.Version, r.Engine.describe(), r.Engine.State)
	}
	if m := r.Model; m != nil {
		w.line("model %s", strings.Join(append([]string{m.Name + withSpace(m.Quantisation)}, m.shape()...), ", "))
	}
	requests, tokens := r.Totals.describe()
	w.line("requests %s", requests)
	w.line("tokens   %s, in %s", tokens, format(r.Totals.time(), metric.Seconds))
	for _, words := range reportNotes(r) {
		w.words("  ", words)
	}
}

// describe returns the engine and, if available, its device.
func (e *EngineInfo) describe() string {
	if e.Device == "" {
		return cmp.Or(e.Name, "unknown") + withSpace(e.Version)
	}
	return e.Name + " on " + e.Device + withSpace(e.Kernels)
}

// shape returns the available properties of a model's size and form.
func (m *Model) shape() (words []string) {
	for _, part := range []struct {
		n    event.Reading
		f    func(float64) string
		unit string
	}{{m.Parameters, metric.Count, " parameters"}, {m.Bytes, metric.Bytes, ""}, {m.Layers, metric.Count, " layers"}} {
		if part.n.OK() {
			words = append(words, part.f(part.n.V)+part.unit)
		}
	}
	switch {
	case m.Experts.V > 0:
		words = append(words, fmt.Sprintf("%s experts, %s used", formatCount(m.Experts), formatCount(m.ExpertsUsed)))
	case m.Architecture != nil && m.Experts.OK():
		words = append(words, "dense")
	}
	return words
}

// withSpace returns the text after a space, "" for nil.
func withSpace(s *string) string {
	if s == nil {
		return ""
	}
	return " " + *s
}

// short formats a number for a column: "-" if it is absent.
func short(n event.Reading, f func(float64) string) string {
	if !n.OK() {
		return "-"
	}
	return f(n.V)
}

// writeParts draws the TTFT components of a request.
func (q *Request) writeParts(w writer) {
	if len(q.Parts) == 0 || !q.TTFT.OK() {
		return
	}
	kind := "warm"
	if q.Cold {
		if kind = "cold, " + q.Parts.load(); q.Started {
			kind = "cold, with the device start"
		}
	}
	w.title("TTFT of request %d: %s (%s)", q.ID, metric.Seconds(q.TTFT.V), kind)
	dominant := ""
	if q.Dominant != nil {
		dominant = *q.Dominant
	}
	w.bars(q.Parts, q.TTFT.V, dominant)
}

// writeParts draws the components of a server's mean TTFT, from its own histograms.
func (r *Aggregates) writeParts(w writer) {
	parts := r.ttftParts()
	total, longest := parts.total()
	if total > 0 {
		w.title("Mean TTFT reported by the server: %s", metric.Seconds(total))
		w.bars(parts, total, longest.Name)
	}
}

// bars draws parts as shares of total.
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

// perSecond formats a token rate with its unit, or returns the reason for its absence.
func perSecond(n event.Reading) string {
	if !n.OK() {
		return n.Absence()
	}
	return metric.Rate(n.V) + " tokens/s"
}

// rateWhile formats a token rate with the time that it covers, or returns the reason for its absence.
func rateWhile(n event.Reading, while string) string {
	if !n.OK() {
		return n.Absence()
	}
	return perSecond(n) + " " + while
}

// median formats the median, or "not yet" without values.
func median(d *Distribution) string {
	if d == nil {
		return event.NotYet.String()
	}
	return metric.Seconds(d.P50.V)
}

// describe returns the available properties of the machine in one line.
func (m *Machine) describe() string {
	var words []string
	if m.OS != nil && m.Arch != nil {
		words = append(words, *m.OS+"/"+*m.Arch)
	}
	if m.Cores != nil {
		words = append(words, strings.TrimSpace(metric.Plural(uint64(*m.Cores), "core")+withSpace(m.CPU)))
	}
	if len(words) == 0 {
		return event.NotReported.String()
	}
	return strings.Join(words, ", ")
}

// section writes a table, then its notes.
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

// proseWidth is the column at which a line of prose is wrapped.
const proseWidth = 110

// words writes a wrapped sentence; before is the prefix of its first line.
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

// writeFindings writes findings, each with its recommendation on a line of its own.
func writeFindings(all []verdict.Verdict, w writer) {
	if len(all) == 0 {
		return
	}
	w.title("INSIGHTS")
	for _, v := range all {
		w.words(fmt.Sprintf("  %-5s  ", v.Severity), v.Text+withEvidence(v.Evidence))
		if v.Try != "" {
			w.words("         try: ", v.Try)
		}
	}
}
