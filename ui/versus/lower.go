package versus

import (
	"fmt"
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

const (
	partWidth = 14 // width of a component's name, cells
	timeWidth = 10
)

// drawParts draws two bars per component on a common scale.
func drawParts(a grid.Area, r *compare.Result, skin *theme.Skin) {
	longest := 0.0
	for _, p := range r.Parts {
		longest = max(longest, p.Base, p.New)
	}
	w := a.W - partWidth - timeWidth
	if longest <= 0 || w < 4 {
		return
	}
	for i, p := range r.Parts {
		y := 2 * i
		if y+1 >= a.H {
			break
		}
		a.Clip(0, y, partWidth-1, text, sanitize.Line(p.Name))
		a.Bar(partWidth, y, w, p.Base/longest, theme.PartOther, skin.Colour(), skin.Glyphs)
		a.Right(a.W, y, dim, metric.Seconds(p.Base))
		a.Bar(partWidth, y+1, w, p.New/longest, theme.PartPrompt, skin.Colour(), skin.Glyphs)
		a.Right(a.W, y+1, data, metric.Seconds(p.New))
	}
}

// drawDrift draws one cell per expert: the change of its share relative to the largest change.
func drawDrift(a grid.Area, r *compare.Result, skin *theme.Skin) {
	base, next := r.Shares[0], r.Shares[1]
	if len(base) != len(next) || len(base) == 0 {
		return
	}
	largest, at, expert := 0.0, 0, 0
	for l := range base {
		for e := range min(len(base[l]), len(next[l])) {
			if d := math.Abs(next[l][e] - base[l][e]); d > largest {
				largest, at, expert = d, l, e
			}
		}
	}
	const label = 5
	columns := max((a.W-label)/2, 1) // two cells an expert
	fold := (len(base[0]) + columns - 1) / columns
	rows := max(a.H-2, 1)
	stack := (len(base) + rows - 1) / rows
	for l := 0; l < len(base); l += stack {
		y := l / stack
		a.Text(0, y, dim, "L"+strconv.Itoa(l))
		for e := 0; e < len(base[l]); e += fold {
			st, glyph := changeStyle(strongest(base, next, l, stack, e, fold), largest, skin)
			a.Fill(label+2*(e/fold), y, 2, st, glyph)
		}
	}
	words := fmt.Sprintf("largest: L%d expert %d, %+.1f points", at, expert, 100*(next[at][expert]-base[at][expert]))
	if fold*stack > 1 {
		words += fmt.Sprintf("; each cell is the largest of %d layers by %d experts", stack, fold)
	}
	a.Elide(0, a.H-1, a.W, dim, words, skin.Glyphs.Ellipsis)
	l := a.Line(0, a.H-2)
	more, less := skin.Glyphs.Swatch, skin.Glyphs.Swatch
	if !skin.Colour() {
		more, less = skin.Glyphs.Shades[len(skin.Glyphs.Shades)-1], skin.Glyphs.Down
	}
	l.Put(grid.Fg(theme.Bad), string(more)).Put(dim, " more  ")
	l.Put(grid.Fg(theme.SeriesPrefill), string(less)).Put(dim, " less")
}

// strongest returns the change with the largest magnitude among the experts that share a cell.
func strongest(base, next [][]float64, layer, layers, expert, experts int) float64 {
	top := 0.0
	for l := layer; l < min(layer+layers, len(base)); l++ {
		for e := expert; e < min(expert+experts, len(base[l]), len(next[l])); e++ {
			if d := next[l][e] - base[l][e]; math.Abs(d) > math.Abs(top) {
				top = d
			}
		}
	}
	return top
}

// changeStyle returns how to draw a change: colour shows its direction, the fill of the cell its size. Without colour,
// a down arrow marks a decrease.
func changeStyle(d, largest float64, skin *theme.Skin) (grid.Style, rune) {
	shades := skin.Glyphs.Shades
	if largest <= 0 {
		return dim, shades[1]
	}
	level := int(math.Round(math.Abs(d) / largest * float64(len(shades)-1)))
	if d < 0 && !skin.Colour() && level > 0 {
		return text, skin.Glyphs.Down
	}
	role := theme.Bad
	if d < 0 {
		role = theme.SeriesPrefill
	}
	return grid.Fg(role), shades[max(level, 1)]
}
