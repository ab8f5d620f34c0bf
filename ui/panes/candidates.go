package panes

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Candidate is something that could be watched. Its words may come from outside.
type Candidate struct {
	Name    string // of the engine
	Model   string // "" not told
	Address string // "" none; it tells the candidate from others, together with Name
	State   string // in a word or two
	Blocked string // why it cannot be watched; "" it can
	Silent  bool   // only since it does not answer now: among others it can be watched, until it does
	Details []string

	Running, Waiting event.Reading // requests
	Decode           event.Reading // tokens/s
}

// Chooser is what can be chosen from, as it is now. The row after the candidates is the built-in model.
type Chooser struct {
	Rows            []Candidate
	Notes           []string // what could not be looked at
	Selected, First int
}

// loadColumns are the numbers of a candidate, right-aligned.
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

// The widths of a candidate's words besides its model, which gets what is left, and of its numbers.
const (
	candidateName    = 18
	candidateState   = 16
	candidateAddress = 28
	candidateNumbers = 21
	leastCandidate   = 12 // of the model's column
	mostDetails      = 8
)

// Candidates draws the choice, one row a candidate, and below them what else there is to say of the one that is selected. It returns where
// the rows are.
func Candidates(a grid.Area, ch *Chooser, c *Ctx) EnginesAt {
	in := c.frameAs(a, "Which engine?", "n/r not reported  - not yet", "")
	if in.H < 3 {
		return EnginesAt{}
	}
	widths := candidateColumns(in.W)
	c.candidateHead(in, widths)
	rows := len(ch.Rows) + 1
	detail := min(mostDetails, max(in.H-rows-2, 0))
	room := max(in.H-1-detail, 1)
	first := max(min(ch.First, ch.Selected, rows-room), ch.Selected-room+1, 0)
	shown := min(room, rows-first)
	for i := range shown {
		if n := first + i; n < len(ch.Rows) {
			c.candidate(in, 1+i, &ch.Rows[n], widths)
		} else {
			c.builtIn(in, 1+i, widths)
		}
		if first+i == ch.Selected {
			c.mark(in, 1+i)
		}
	}
	if detail > 1 {
		y := in.H - detail
		in.Fill(0, y, in.W, grid.Fg(theme.Border), c.Skin.Glyphs.Horizontal)
		c.candidateDetail(in.Sub(0, y+1, in.W, detail-1), ch)
	}
	return EnginesAt{grid.Rect{X: in.X, Y: in.Y + 1, W: in.W, H: shown}, first}
}

// candidateColumns are the widths of name, model, address and state; 0: there is none.
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
	if more := left - 2*leastCandidate; widths[2] > 0 && more > 0 { // sockets have long addresses
		widths[2] += more / 2
		left -= more / 2
	}
	widths[1] = max(left, 0)
	return widths
}

func (c *Ctx) candidateHead(a grid.Area, widths [4]int) {
	x := 2
	for i, name := range []string{"engine", "model", "address", "state"} {
		a.Clip(x, 0, widths[i], dim, name)
		x += widths[i]
	}
	for _, col := range loadColumns {
		x += col.width
		a.Right(x, 0, dim, col.name)
	}
}

// candidate draws one row. What cannot be watched is dim, and says so where there is a column for it.
func (c *Ctx) candidate(a grid.Area, y int, r *Candidate, widths [4]int) {
	gl := c.Skin.Glyphs
	name, words, state := loud, text, good
	if r.Blocked != "" {
		name, words, state = dim, dim, watch
	}
	x := 2
	for i, cell := range []struct {
		words string
		st    grid.Style
	}{{r.Name, name}, {orNone(r.Model), words}, {c.tail(orNone(r.Address), widths[2]-1), words}, {r.State, state}} {
		a.Elide(x, y, widths[i]-1, cell.st, sanitize.Line(cell.words), gl.Ellipsis)
		x += widths[i]
	}
	for _, col := range loadColumns {
		x += col.width
		words, st := cellOf(col.cell(r), col.format)
		a.Right(x, y, st, words)
	}
	if widths[3] == 0 && r.Blocked != "" {
		a.Cell(1, y, watch, gl.Watch)
	}
}

// tail is the end of an address in w cells: sockets are all in the same folder.
func (c *Ctx) tail(address string, w int) string {
	words := []rune(sanitize.Line(address))
	if w < 2 || grid.Width(string(words)) <= w {
		return string(words)
	}
	for grid.Width(string(words)) > w-1 {
		words = words[1:]
	}
	return string(c.Skin.Glyphs.Ellipsis) + string(words)
}

func orNone(words string) string {
	if words == "" {
		return "-"
	}
	return words
}

// builtIn draws the last row.
func (c *Ctx) builtIn(a grid.Area, y int, widths [4]int) {
	n := a.Clip(2, y, a.W-2, text, "built-in model")
	if widths[3] > 0 {
		a.Elide(2+max(n+2, widths[0]), y, a.W-4-widths[0], dim, "runs in this program, on prompts of its own", c.Skin.Glyphs.Ellipsis)
	}
}

// candidateDetail says of the selected one what there is no room for in its row, and what could not be looked at.
func (c *Ctx) candidateDetail(a grid.Area, ch *Chooser) {
	y := 0
	put := func(st grid.Style, words string) {
		for _, line := range grid.Wrap(nil, sanitize.Line(words), a.W) {
			a.Text(0, y, st, line)
			y++
		}
	}
	if ch.Selected < len(ch.Rows) {
		r := &ch.Rows[ch.Selected]
		put(text, strings.Join(filled(r.Name, r.Model, r.Address), " "+string(c.Skin.Glyphs.Bullet)+" "))
		if r.Blocked != "" {
			put(watch, r.Blocked)
		}
		for _, d := range r.Details {
			put(dim, d)
		}
	} else {
		put(text, "a small mixture-of-experts model that is part of llmtop: nothing else is watched")
	}
	for _, n := range ch.Notes {
		put(dim, n)
	}
}

// filled are those words that say something.
func filled(words ...string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// ChooserHeader draws the top row over the choice.
func ChooserHeader(a grid.Area, ch *Chooser, c *Ctx) {
	l := c.brand(a)
	ready := 0
	for _, r := range ch.Rows {
		if r.Blocked == "" {
			ready++
		}
	}
	words := " engines on this machine"
	if len(ch.Rows) == 1 {
		words = " engine on this machine"
	}
	l.Put(loud, itoa(len(ch.Rows))+words).Gap(2)
	if blocked := len(ch.Rows) - ready; blocked > 0 {
		l.Put(watch, itoa(blocked)+" cannot be watched as it is").Gap(2)
	}
	if others := "others: llmtop attach ADDRESS"; l.Room() > grid.Width(others) {
		a.Right(a.W-1, 0, dim, others)
	}
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}
