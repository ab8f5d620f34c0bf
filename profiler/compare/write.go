package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
)

// WriteJSON writes the result as one document.
func (r *Result) WriteJSON(w io.Writer) error {
	e := clean.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// MarshalJSON writes null for unknown numbers and unbounded intervals.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	return json.Marshal(struct {
		plain
		Base   *float64 `json:"base"`
		New    *float64 `json:"new"`
		Change *float64 `json:"change"`
		Low    *float64 `json:"change_low"`
		High   *float64 `json:"change_high"`
		P      *float64 `json:"p"`
	}{plain(r), finite(r.Base), finite(r.New), finite(r.Change), finite(r.Low), finite(r.High), finite(r.P)})
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) || v == -1 { // -1: lower end of an unbounded interval
		return nil
	}
	return &v
}

// table returns the rows as cells, for text and Markdown.
func (r *Result) table() [][]string {
	cells := [][]string{{"point", "metric", "base", "new", "change", "95 % interval", "threshold", "samples", "outcome"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		outcome := row.outcome()
		if !row.Gate {
			outcome = "(" + outcome + ")"
		}
		cells = append(cells, []string{
			row.Point, row.Metric, row.Format(row.Base), row.Format(row.New), change(row.Change), row.interval(),
			change(row.Threshold)[1:], row.samples(), outcome,
		})
	}
	if !slices.ContainsFunc(cells[1:], func(c []string) bool { return c[0] != "" }) {
		for i := range cells {
			cells[i] = cells[i][1:]
		}
	}
	return cells
}

// unknown stands for a number without data.
const unknown = "no data"

// Format formats a value in the unit of the row's metric.
func (r *Row) Format(v float64) string {
	switch {
	case math.IsNaN(v):
		return unknown
	case r.Unit == "s":
		return metric.Seconds(v)
	}
	return metric.PerSecond(v)
}

// change formats a relative difference in per cent with its sign.
func change(v float64) string {
	switch {
	case math.IsNaN(v):
		return unknown
	case math.IsInf(v, 0):
		return "none"
	}
	return metric.PercentChange(v)
}

// widest is the upper end of the widest interval that says something about a change: eleven times the base.
const widest = 10

func (r *Row) interval() string {
	switch {
	case math.IsNaN(r.Low):
		return unknown
	case finite(r.Low) == nil || finite(r.High) == nil:
		return "too few runs"
	case r.High > widest:
		return "not measurable"
	}
	return fmt.Sprintf("%+.1f to %+.1f %%", 100*r.Low, 100*r.High)
}

// outcome is the outcome of the row; of an inconclusive one it is the reason in short.
func (r *Row) outcome() string {
	switch {
	case r.Outcome != Inconclusive:
		return r.Outcome.String()
	case math.IsNaN(r.Change):
		return unknown
	case math.IsInf(r.High, 1):
		return "too few runs"
	}
	return "not significant"
}

// samples returns how many requests and runs were compared.
func (r *Row) samples() string {
	unit := "run"
	if r.InTurns {
		unit = "turn"
	}
	if r.Runs != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d+%d in %d %s", r.BaseN, r.NewN, r.Runs, unit)
}

// summary says what the row contributes to the outcome: its change with the interval and the threshold, and why it is
// inconclusive.
func (r *Row) summary() string {
	out := r.Metric
	switch {
	case math.IsNaN(r.Change):
	case math.IsInf(r.High, 1):
		out += fmt.Sprintf(" %s (threshold %s)", change(r.Change), change(r.Threshold)[1:])
	default:
		out += fmt.Sprintf(" %s (95 %%: %s; threshold %s)", change(r.Change), r.interval(), change(r.Threshold)[1:])
	}
	if r.Point != "" {
		out += " at " + r.Point
	}
	if r.Outcome == Inconclusive {
		out += ": " + r.Why
	}
	return out
}

// WriteText writes the result as text.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n%s against %s\n", strings.ToUpper(r.Outcome.String()), clean.Line(r.Summary), clean.Line(r.New), clean.Line(r.Base))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "different conditions: %s\n", clean.Line(d.String()))
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range r.table() {
		for i, cell := range cells {
			cells[i] = clean.Line(cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.writeParts(&b)
	r.writeDrift(&b)
	for i, note := range r.notes() {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", clean.Line(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// barWidth is the width in cells of the longest bar of the TTFT components.
const barWidth = 32

func (r *Result) writeParts(b *strings.Builder) {
	longest := 0.0
	for _, p := range r.Parts {
		longest = max(longest, p.Base, p.New)
	}
	if longest <= 0 {
		return
	}
	fmt.Fprintf(b, "\nTTFT components, mean of warm requests\n")
	for _, p := range r.Parts {
		for i, v := range []float64{p.Base, p.New} {
			name, side := clean.Line(p.Name), "base"
			if i == 1 {
				name, side = "", "new"
			}
			fmt.Fprintf(b, "%-16s %-4s %9s %s\n", name, side, metric.Seconds(v), strings.Repeat("#", int(math.Round(v/longest*barWidth))))
		}
	}
}

func (r *Result) writeDrift(b *strings.Builder) {
	if len(r.Experts) == 0 {
		return
	}
	most := slices.MaxFunc(r.Experts, func(x, y LayerDrift) int { return cmp.Compare(x.Drift, y.Drift) })
	if most.Drift < 0.0005 { // 0.0 % at no expert in particular
		b.WriteString("\nrouting drift: below 0.1 % of each layer's picks\n")
		return
	}
	fmt.Fprintf(b, "\nrouting drift: at most %.1f %% of a layer's picks (layer %d; largest change: expert %d, %+.1f points)\n",
		100*most.Drift, most.Layer, most.Expert, 100*most.Change)
}

// notes returns the reasons of gates that are inconclusive, and warnings about the comparison.
func (r *Result) notes() []string {
	var out []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Gate && row.Outcome == Inconclusive && row.summary() != r.Summary {
			out = append(out, row.summary())
		}
	}
	return append(out, r.Notes...)
}

// WriteMarkdown writes the result as a comment for a pull request.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### llmtop: %s\n\n%s\n\n`%s` against `%s`.\n\n", r.Outcome, clean.Markdown(r.Summary), clean.Code(r.New), clean.Code(r.Base))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "- different conditions: %s\n", clean.Markdown(d.String()))
	}
	if len(r.Differences) > 0 {
		b.WriteByte('\n')
	}
	for i, cells := range r.table() {
		for _, cell := range cells {
			b.WriteString("| " + clean.Markdown(cell) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "\n%s\n", clean.Markdown(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
