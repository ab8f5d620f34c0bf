package compare

import (
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

// WriteJSON writes the result as one document. An interval that has no end is null.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// MarshalJSON writes null for what is not known: an interval without an end, a noise floor of too few runs.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	return json.Marshal(struct {
		plain
		Low   *float64 `json:"change_low"`
		High  *float64 `json:"change_high"`
		Noise *float64 `json:"noise"`
	}{plain(r), finite(r.Low), finite(r.High), positive(r.Noise)})
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) || v == -1 { // -1 is the exponential of an interval that has no end
		return nil
	}
	return &v
}

func positive(v float64) *float64 {
	if v < 0 {
		return nil
	}
	return &v
}

// table is the rows as cells: what people see, as text and as Markdown.
func (r *Result) table() [][]string {
	cells := [][]string{{"point", "metric", "base", "new", "change", "95 % interval", "noise", "matters", "samples", "outcome"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		outcome := row.Outcome.String()
		if !row.Gate {
			outcome = "(" + outcome + ")"
		}
		cells = append(cells, []string{
			row.Point, row.Metric, row.quantity(row.Base), row.quantity(row.New), change(row.Change), row.interval(),
			row.noise(), change(row.Threshold)[1:], row.samples(), outcome,
		})
	}
	if !slices.ContainsFunc(cells[1:], func(c []string) bool { return c[0] != "" }) {
		for i := range cells {
			cells[i] = cells[i][1:]
		}
	}
	return cells
}

func (r *Row) quantity(v float64) string {
	if r.Unit == "s" {
		return metric.Seconds(v)
	}
	return metric.Rate(v) + "/s"
}

// change is a relative difference in per cent with its sign.
func change(v float64) string {
	if math.IsInf(v, 0) {
		return "none"
	}
	return fmt.Sprintf("%+.1f %%", 100*v)
}

func (r *Row) interval() string {
	if finite(r.Low) == nil || finite(r.High) == nil {
		return "too few"
	}
	return fmt.Sprintf("%+.1f to %+.1f %%", 100*r.Low, 100*r.High)
}

func (r *Row) noise() string {
	if r.Noise < 0 {
		return "not known"
	}
	return fmt.Sprintf("%.1f %%", 100*r.Noise)
}

func (r *Row) samples() string {
	if r.Runs > 1 {
		return fmt.Sprintf("%d+%d in %d runs", r.BaseN, r.NewN, r.Runs)
	}
	return fmt.Sprintf("%d+%d", r.BaseN, r.NewN)
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s against %s\n", strings.ToUpper(r.Outcome.String()), r.New, r.Base)
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "not the same: %s\n", d)
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range r.table() {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.writeParts(&b)
	r.writeDrift(&b)
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	_, err := io.WriteString(w, clean.Printable(b.String()))
	return err
}

// barWidth is the length of the longer bar of the longest TTFT component, in cells.
const barWidth = 32

func (r *Result) writeParts(b *strings.Builder) {
	longest := 0.0
	for _, p := range r.Parts {
		longest = max(longest, p.Base, p.New)
	}
	if longest <= 0 {
		return
	}
	fmt.Fprintf(b, "\nwhere TTFT goes, mean of all requests\n")
	for _, p := range r.Parts {
		for i, v := range []float64{p.Base, p.New} {
			name, side := p.Name, "base"
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
	most := slices.MaxFunc(r.Experts, func(x, y LayerDrift) int {
		if x.Drift < y.Drift {
			return -1
		}
		return 1
	})
	fmt.Fprintf(b, "\nrouting: at most %.1f %% of a layer's picks go elsewhere (layer %d; most at expert %d, %+.1f points)\n",
		100*most.Drift, most.Layer, most.Expert, 100*most.Change)
}

// notes end the text with what a reader has to know to trust it.
func (r *Result) notes() []string {
	out := slices.Clone(r.Notes)
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Gate && row.Runs < fewestRuns }) {
		out = append(out, "One or two runs cannot tell what differs from run to run. Give several reports a side to know: a1.json,a2.json,a3.json.")
	}
	return out
}

// WriteMarkdown writes the result as a comment to a change.
func (r *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### llmtop: %s\n\n`%s` against `%s`.\n\n", r.Outcome, clean.Code(r.New), clean.Code(r.Base))
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "- not the same: %s\n", clean.Markdown(d.String()))
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
