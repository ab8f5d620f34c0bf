package request

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// piece is a part of a token's text in one row.
type piece struct {
	nth, row, x int
	words       string
}

// tokenText writes the text of the tokens, each on the colour of its gap, scrolled so that the selected token is in the
// middle.
func tokenText(a grid.Area, f *pane.Frame, v *View) {
	a.Text(0, 0, pane.Heading, "Text")
	if f.Skin.Colour() {
		a.Text(6, 0, pane.Dim, "coloured by gap")
	}
	a = a.Sub(0, 1, a.W, a.H-1)
	pieces, at := layTokens(v.Request, a.W, v.Token)
	if len(pieces) == 0 {
		return
	}
	last := pieces[len(pieces)-1].row
	top := max(min(at-a.H/2, last-a.H+1), 0)
	median := float64(v.Request.ITL.P50)
	for _, p := range pieces {
		if p.row < top || p.row >= top+a.H {
			continue
		}
		st := pane.Data
		if gap, known := GapBefore(v.Request, p.nth); known && f.Skin.Colour() {
			bg := theme.Heat(gapHeat(gap, median))
			st = grid.Style{FG: f.Skin.OnHeat(bg), BG: bg}
		}
		if p.nth == v.Token {
			st = pane.Badge(f.Skin)
		}
		a.Text(p.x, p.row-top, st, p.words)
	}
}

// textRows returns the rows that the text takes.
func textRows(r *store.Request, w int) int {
	pieces, _ := layTokens(r, w, 0)
	if len(pieces) == 0 {
		return 0
	}
	return pieces[len(pieces)-1].row + 1
}

// layTokens wraps the texts of the kept tokens at w cells, between tokens where they fit, and returns the row of the
// chosen token.
func layTokens(r *store.Request, w, chosen int) (out []piece, at int) {
	row, x := 0, 0
	tokens := r.Tokens
	for i := range tokens {
		t := &tokens[i]
		for k, line := range strings.Split(sanitize.Text(t.Text), "\n") {
			if k > 0 {
				row, x = row+1, 0
			}
			n := grid.Width(line)
			if x > 0 && x+n > w {
				row, x = row+1, 0
				line = strings.TrimPrefix(line, " ")
				n = grid.Width(line)
			}
			nth := int(t.Nth)
			if chosen >= nth && chosen < int(t.Nth+t.N) {
				at, nth = row, chosen
			}
			out = append(out, piece{nth, row, x, line})
			x += min(n, w)
		}
	}
	return out, at
}
