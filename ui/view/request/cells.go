package request

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// Cells is the screen position of the token cells of a request: token First is at the upper left, with PerRow tokens
// per row.
type Cells struct {
	At                          grid.Rect
	First, Last, PerRow, CellsW int
}

// Token returns the token at screen position x, y, or -1.
func (m *Cells) Token(x, y int) int {
	if !m.At.Has(x, y) || m.CellsW == 0 {
		return -1
	}
	col := (x - m.At.X) / m.CellsW
	if n := m.First + (y-m.At.Y)*m.PerRow + col; col < m.PerRow && n <= m.Last {
		return n
	}
	return -1
}

// Received returns the first and last token numbers for which a gap or a token is kept; ok is false without any.
// Dropped tokens have no number.
func Received(r *store.Request) (first, last int, ok bool) {
	tokens := r.Tokens
	if len(tokens) == 0 {
		return 0, 0, false
	}
	t := &tokens[len(tokens)-1]
	last = int(t.Nth+t.N) - 1
	first = last - len(r.Gaps) + 1
	if r.FirstGap == 0 { // the tokens that came with the first stamp have no gap
		first = 0
	}
	return max(min(first, int(tokens[0].Nth)), 0), last, true
}

// GapBefore returns the gap before token n in ns; false for the first token and for evicted gaps.
func GapBefore(r *store.Request, n int) (int64, bool) {
	_, last, ok := Received(r)
	i := len(r.Gaps) - 1 - (last - n)
	if !ok || i < 0 || i >= len(r.Gaps) {
		return 0, false
	}
	return r.Gaps[i], true
}

// KeptToken returns the kept data of token n, or nil if only its gap is kept.
func KeptToken(r *store.Request, n int) *store.Token {
	tokens := r.Tokens
	for i := len(tokens) - 1; i >= 0; i-- {
		if t := &tokens[i]; n >= int(t.Nth) {
			if n < int(t.Nth+t.N) {
				return t
			}
			return nil
		}
	}
	return nil
}

// Slowest returns the number of the token after the longest kept gap, the first of equals; the last token if no gap is
// kept.
func Slowest(r *store.Request) int {
	_, last, _ := Received(r)
	at, most := last, int64(-1)
	for i, g := range r.Gaps {
		if g > most {
			at, most = last-len(r.Gaps)+1+i, g
		}
	}
	return at
}

// ClampSelection keeps the selected token within the received ones. Without a choice of the user it selects the slowest
// token of an ended request and the last token of a running one.
func (v *View) ClampSelection() {
	first, last, ok := Received(v.Request)
	switch {
	case !ok:
		v.Token, v.Chosen = 0, false
	case v.Chosen:
		v.Token = max(min(v.Token, last), first)
	case v.Request.State.Final():
		v.Token = Slowest(v.Request)
	default:
		v.Token = last
	}
}

// gapHeat places a gap on the colour scale 0..1, logarithmically: 0 at half the median, 0.25 at the median, 1 at eight
// times the median.
func gapHeat(gap int64, median float64) float64 {
	if gap <= 0 || median <= 0 {
		return 0
	}
	return min(max((math.Log2(float64(gap)/median)+1)/4, 0), 1)
}

// cellLabel is the width of the token numbers left of the cells.
const cellLabel = 6

// cellSize returns the width of one token cell and the number of cells per row, a round number where possible.
func cellSize(w, tokens int) (width, perRow int) {
	w = max(w-cellLabel, 1)
	width = 1
	if tokens*2 <= 4*w {
		width = 2
	}
	perRow = max(w/width, 1)
	for _, round := range [...]int{200, 160, 120, 100, 80, 60, 50, 40, 30, 20, 10} {
		if perRow >= round {
			return width, round
		}
	}
	return width, perRow
}

// cellRows returns the number of rows that the token cells of a request need.
func cellRows(f *pane.Frame, w int, r *store.Request) int {
	first, last, ok := Received(r)
	if !ok {
		return 1
	}
	_, perRow := cellSize(w, last-first+1)
	return (last-first)/perRow + 1
}

// tokenCells draws each token as a cell coloured by its gap.
func tokenCells(a grid.Area, f *pane.Frame, v *View, caps event.Caps) {
	r := v.Request
	first, last, ok := Received(r)
	if a.H < 2 {
		return
	}
	if !ok {
		a.Text(0, 0, pane.Heading, "Tokens")
		a.Elide(0, 1, a.W, pane.Dim, noTokens(f, r, caps), f.Skin.Glyphs.Ellipsis)
		return
	}
	width, perRow := cellSize(a.W, last-first+1)
	rows := a.H - 1
	top := max(min((v.Token-first)/perRow-rows/2, (last-first)/perRow-rows+1), 0)
	from := first + top*perRow
	to := min(from+rows*perRow-1, last)
	v.Cells = Cells{At: grid.Rect{X: a.X + cellLabel, Y: a.Y + 1, W: perRow * width, H: (to-from)/perRow + 1}, First: from, Last: to, PerRow: perRow, CellsW: width}
	cellsTitle(a, f, from, to, last)
	median := float64(r.ITL.P50)
	for n := from; n <= to; n++ {
		x, y := cellLabel+(n-from)%perRow*width, 1+(n-from)/perRow
		if (n-from)%perRow == 0 {
			a.Right(cellLabel-1, y, pane.Dim, strconv.Itoa(n))
		}
		gap, known := GapBefore(r, n)
		tokenCell(a.Sub(x, y, width, 1), f, known, gapHeat(gap, median), n == v.Token)
	}
}

// noTokens returns why a request has no tokens to show.
func noTokens(f *pane.Frame, r *store.Request, caps event.Caps) string {
	switch {
	case r.Slim:
		return "evicted: tokens are kept for the last " + strconv.Itoa(store.MaxRequests) + " ended requests only"
	case !caps.Has(event.CapTokens):
		return "per-token events: not reported by this engine"
	case r.State.Final() && r.Generated > 0:
		return "not streamed: the answer came in one piece"
	case r.State.Final():
		return "no token generated"
	}
	return "no token yet"
}

// tokenCell draws one token. The selected token stands out in every colour profile.
func tokenCell(a grid.Area, f *pane.Frame, known bool, heat float64, chosen bool) {
	gl := f.Skin.Glyphs
	for x := range a.W {
		switch {
		case chosen && f.Skin.Colour():
			a.Cell(x, 0, grid.Style{FG: theme.OnBadge, BG: theme.Cursor, Attr: grid.Bold}, [...]rune{gl.Arrow, ' '}[x])
		case chosen:
			a.Cell(x, 0, pane.Data.With(grid.Reverse), gl.Arrow)
		case !known:
			a.Cell(x, 0, grid.Fg(theme.PartFirst), gl.Bullet)
		default:
			pane.HeatCell(a, f, x, 0, max(heat, 0.01))
		}
	}
}

// cellsTitle writes the range of tokens shown and the colour scale.
func cellsTitle(a grid.Area, f *pane.Frame, from, to, last int) {
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Tokens").Gap(2)
	words := "1 cell = 1 token"
	if to-from < last {
		words = strconv.Itoa(from) + " to " + strconv.Itoa(to) + " of " + metric.Count(float64(last+1))
	}
	l.Put(pane.Dim, words)
	const scale = 12
	names := [2]string{" gap ½ ", " 8" + f.Skin.Glyphs.Times + " the median"}
	if f.Skin.Glyphs.ASCII {
		names[0] = " gap 1/2 "
	}
	if grid.Width(names[0])+scale+grid.Width(names[1])+l.X+2 > a.W {
		return
	}
	x := a.W - grid.Width(names[1]) - scale
	a.Right(x, 0, pane.Dim, names[0])
	for i := range scale {
		tokenCell(a.Sub(x+i, 0, 1, 1), f, true, float64(i)/(scale-1), false)
	}
	a.Text(x+scale, 0, pane.Dim, names[1])
}

const widestGap = 4 // cells of the column of a token, with the gap after it

// gapColumns draws the gaps around the selected token as columns.
func gapColumns(a grid.Area, f *pane.Frame, v *View) {
	r, gl := v.Request, f.Skin.Glyphs
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Gaps").Gap(2).Put(pane.Dim, "1 column = 1 token")
	a = a.Sub(0, 1, a.W, a.H-1)
	median := float64(r.ITL.P50)
	if median <= 0 || a.H < 1 {
		return
	}
	times := gl.Times
	a.Right(cellLabel-1, 0, pane.Dim, strconv.Itoa(int(pane.StripTop))+times)
	a.Right(cellLabel-1, a.H-1-(a.H-1)/int(pane.StripTop), pane.Dim, "1"+times)
	plot := a.Sub(cellLabel, 0, a.W-cellLabel, a.H)
	_, last, _ := Received(r)
	first := last - len(r.Gaps) + 1
	from := max(min(v.Token-plot.W/2, last-plot.W+1), first)
	wide := max(min(plot.W/max(last-from+1, 1), widestGap), 1)
	for x := range min(plot.W, last-from+1) {
		gap, _ := GapBefore(r, from+x)
		ratio := float64(gap) / median
		st := pane.GapStyle(ratio)
		if from+x == v.Token {
			st = grid.Fg(theme.Accent).With(grid.Bold)
		}
		for i := range max(wide-1, 1) { // a gap of one after wide columns
			plot.Column(x*wide+i, a.H-1, a.H, ratio/pane.StripTop, st, gl)
		}
	}
	to := min(from+plot.W-1, last)
	l.Put(pane.Dim, ", "+strconv.Itoa(from)+" to "+strconv.Itoa(to))
}
