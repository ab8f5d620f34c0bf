package engines

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Candidate is an engine that llmtop could attach to. Its strings may come from outside and are not sanitised.
type Candidate struct {
	Name    string // engine name
	Model   string // "" if not reported
	Address string // "" if unknown; Name and Address identify a candidate
	State   string // one or two words
	Blocked string // why llmtop cannot attach to it; "" if it can
	Silent  bool   // blocked only because it does not answer; it can be attached together with others and is polled until it answers
	Ask     string // question before it is attached by Address, because that changes the engine; "": none
	Instead string // address by which it can be attached without that question; "": none
	Details []string

	Running, Waiting event.Reading // requests
	Decode           event.Reading // tokens/s
}

// Chooser is the state of the engine choice. The row after the candidates is the built-in model.
type Chooser struct {
	pane.Rows
	Candidates []Candidate
	Notes      []string // sources that could not be searched
}

// loadColumns are the numeric columns of a candidate, right-aligned.
var loadColumns = []struct {
	name   string
	width  int
	cell   func(*Candidate) event.Reading
	format func(float64) string
}{
	{"run", 5, func(r *Candidate) event.Reading { return r.Running }, metric.Count},
	{"wait", 6, func(r *Candidate) event.Reading { return r.Waiting }, metric.Count},
	{"decode/s", 10, func(r *Candidate) event.Reading { return r.Decode }, metric.Rate},
}

// Column widths in cells. The model column takes the rest.
const (
	candidateName    = 18
	candidateState   = 16
	candidateAddress = 28
	candidateNumbers = 21
	leastCandidate   = 12 // minimum of the model column
	mostDetails      = 8
)

// Draw draws the engine choice: one row per candidate, and below a rule the details of the selected one.
func (ch *Chooser) Draw(a grid.Area, f *pane.Frame) {
	in := f.BoxAs(a, "Which engine?", "n/r not reported  - not yet", "")
	if ch.Body = (grid.Rect{}); in.H < 3 {
		return
	}
	widths := candidateColumns(in.W)
	candidateHead(in, f, widths)
	rows := len(ch.Candidates) + 1
	detail := min(mostDetails, max(in.H-rows-2, 0))
	from, to := ch.Show(rows, in.Sub(0, 1, in.W, max(in.H-1-detail, 1)))
	for n := from; n < to; n++ {
		y := 1 + n - from
		if n < len(ch.Candidates) {
			candidate(in, f, y, &ch.Candidates[n], widths)
		} else {
			builtIn(in, f, y, widths)
		}
		if n == ch.Selected {
			pane.MarkRow(in, f, y)
		}
	}
	if detail > 1 {
		y := in.H - detail
		in.Fill(0, y, in.W, grid.Fg(theme.Border), f.Skin.Glyphs.Horizontal)
		candidateDetail(in.Sub(0, y+1, in.W, detail-1), f, ch)
	}
}

// candidateColumns returns the widths of name, model, address and state; 0 hides a column.
func candidateColumns(w int) (widths [4]int) {
	left := w - 2 - candidateNumbers
	widths[0] = min(candidateName, left)
	left -= widths[0]
	for _, more := range []struct{ column, width int }{{3, candidateState}, {2, candidateAddress}} {
		if left >= more.width+leastCandidate {
			widths[more.column] = more.width
			left -= more.width
		}
	}
	if more := left - 2*leastCandidate; widths[2] > 0 && more > 0 { // socket paths are long
		widths[2] += more / 2
		left -= more / 2
	}
	widths[1] = max(left, 0)
	return widths
}

func candidateHead(a grid.Area, f *pane.Frame, widths [4]int) {
	x := 2
	for i, name := range []string{"engine", "model", "address", "state"} {
		a.Clip(x, 0, widths[i], pane.Dim, name)
		x += widths[i]
	}
	for _, col := range loadColumns {
		x += col.width
		a.Right(x, 0, pane.Dim, col.name)
	}
}

// candidate draws one row. A candidate that cannot be attached is dim; its state, or a mark where the state has no
// column, shows that.
func candidate(a grid.Area, f *pane.Frame, y int, r *Candidate, widths [4]int) {
	gl := f.Skin.Glyphs
	name, words, state := pane.Loud, pane.Plain, pane.Good
	if r.Blocked != "" {
		name, words, state = pane.Dim, pane.Dim, pane.Watch
	}
	x := 2
	for i, cell := range []struct {
		words string
		st    grid.Style
	}{{r.Name, name}, {cmp.Or(r.Model, "-"), words}, {lastOf(sanitize.Line(cmp.Or(r.Address, "-")), widths[2]-1, gl.Ellipsis), words}, {r.State, state}} {
		a.Elide(x, y, widths[i]-1, cell.st, sanitize.Line(cell.words), gl.Ellipsis)
		x += widths[i]
	}
	for _, col := range loadColumns {
		x += col.width
		words, st := formatCell(col.cell(r), col.format)
		a.Right(x, y, st, words)
	}
	if widths[3] == 0 && r.Blocked != "" {
		a.Cell(1, y, pane.Watch, gl.Watch)
	}
}

// builtIn draws the row of the built-in model.
func builtIn(a grid.Area, f *pane.Frame, y int, widths [4]int) {
	n := a.Clip(2, y, a.W-2, pane.Plain, "built-in model")
	if widths[3] > 0 {
		a.Elide(2+max(n+2, widths[0]), y, a.W-4-widths[0], pane.Dim, "runs inside llmtop on its own prompts", f.Skin.Glyphs.Ellipsis)
	}
}

// candidateDetail describes the selected candidate in full and lists sources that could not be searched.
func candidateDetail(a grid.Area, f *pane.Frame, ch *Chooser) {
	y := 0
	put := func(st grid.Style, words string) { y = a.Wrapped(0, y, st, sanitize.Line(words)) }
	if ch.Selected < len(ch.Candidates) {
		r := &ch.Candidates[ch.Selected]
		known := slices.DeleteFunc([]string{r.Name, r.Model, r.Address}, func(words string) bool { return words == "" })
		put(pane.Plain, strings.Join(known, " "+string(f.Skin.Glyphs.Bullet)+" "))
		if r.Blocked != "" {
			put(pane.Watch, r.Blocked)
		}
		for _, d := range r.Details {
			put(pane.Dim, d)
		}
	} else {
		put(pane.Plain, "a small mixture-of-experts model inside llmtop; no other engine is profiled")
	}
	for _, n := range ch.Notes {
		put(pane.Dim, n)
	}
}

// DrawHeader draws the top row above the engine choice.
func (ch *Chooser) DrawHeader(a grid.Area, f *pane.Frame) {
	l := chrome.DrawBrand(a, f)
	blocked := 0
	for _, r := range ch.Candidates {
		if r.Blocked != "" {
			blocked++
		}
	}
	l.Put(pane.Loud, pane.CountOf(uint64(len(ch.Candidates)), "engine", "engines")+" on this machine").Gap(2)
	if blocked > 0 {
		l.Put(pane.Watch, strconv.Itoa(blocked)+" cannot be attached").Gap(2)
	}
	if others := "others: llmtop attach ADDRESS"; l.Room() > grid.Width(others) {
		a.Right(a.W-1, 0, pane.Dim, others)
	}
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}
