package grid

import (
	"math"

	"github.com/llmtop/llmtop/theme"
)

// Frame draws a box of light lines along the area's edge.
func (a Area) Frame(st Style, gl *theme.Glyphs) {
	if a.W < 2 || a.H < 2 {
		return
	}
	a.Fill(1, 0, a.W-2, st, gl.Horizontal)
	a.Fill(1, a.H-1, a.W-2, st, gl.Horizontal)
	for y := 1; y < a.H-1; y++ {
		a.Cell(0, y, st, gl.Vertical)
		a.Cell(a.W-1, y, st, gl.Vertical)
	}
	a.Cell(0, 0, st, gl.TopLeft)
	a.Cell(a.W-1, 0, st, gl.TopRight)
	a.Cell(0, a.H-1, st, gl.BottomLeft)
	a.Cell(a.W-1, a.H-1, st, gl.BottomRight)
}

// Bar draws a gauge of w cells filled to share (0..1) in eighths of a cell, over a track.
func (a Area) Bar(x, y, w int, share float64, fg theme.Role, gl *theme.Glyphs) {
	if w <= 0 {
		return
	}
	eighths := int(math.Round(clamp(share) * float64(w*8)))
	if share > 0 && eighths == 0 {
		eighths = 1
	}
	for i := range w {
		n := min(max(eighths-i*8, 0), 8)
		switch {
		case n == 0:
			a.Cell(x+i, y, Fg(theme.Track), gl.Track)
		case n == 8 || gl.ASCII:
			a.Cell(x+i, y, Fg(fg), gl.Lefts[n])
		default:
			a.Cell(x+i, y, Fg(fg), gl.Lefts[n])
		}
	}
}

// Seg is one component of a stacked bar.
type Seg struct {
	Share float64 // of the whole bar's width
	Role  theme.Role
	Fill  rune // what it is made of where there is no colour
}

// Stack draws segments one after another on w cells. With colour the boundaries fall on eighths of a cell; without, every
// cell shows the fill of the segment that covers most of it.
func (a Area) Stack(x, y, w int, segs []Seg, colour bool, gl *theme.Glyphs) {
	edge, start := 0.0, 0
	for k, s := range segs {
		edge += s.Share * float64(w)
		end := min(int(math.Round(edge)), w)
		if k == len(segs)-1 && end == start && end < w && s.Share > 0 && start == 0 {
			end = start + 1
		}
		for i := start; i < end; i++ {
			if colour && !gl.ASCII {
				a.Cell(x+i, y, Fg(s.Role), gl.Lefts[8])
			} else {
				a.Cell(x+i, y, Fg(s.Role), s.Fill)
			}
		}
		start = max(start, end)
	}
	if colour && !gl.ASCII {
		a.stackEdges(x, y, w, segs, gl)
	}
}

// stackEdges refines the cells in which one segment meets the next, or the bar its end, to eighths.
func (a Area) stackEdges(x, y, w int, segs []Seg, gl *theme.Glyphs) {
	edge := 0.0
	for k, s := range segs {
		from := edge
		edge += s.Share * float64(w)
		i := int(edge)
		n := int(math.Round((edge - float64(i)) * 8))
		if i >= w || n == 0 || n == 8 || from > float64(i) {
			continue // too thin to show beside its neighbours in the same cell
		}
		bg := theme.Background
		if k+1 < len(segs) {
			bg = segs[widest(segs, k+1, float64(w), 1-(edge-float64(i)))].Role
		}
		a.Cell(x+i, y, Fg(s.Role).On(bg), gl.Lefts[n])
	}
}

// widest is the segment from k on that covers most of the next room cells.
func widest(segs []Seg, k int, w, room float64) int {
	best, most := k, 0.0
	for ; k < len(segs) && room > 0; k++ {
		if n := min(segs[k].Share*w, room); n > most {
			best, most = k, n
		}
		room -= segs[k].Share * w
	}
	return best
}

// Column draws one column of h cells upward from row y, filled to share (0..1) in eighths; share below 0 leaves it blank.
func (a Area) Column(x, y, h int, share float64, st Style, gl *theme.Glyphs) {
	if share < 0 || math.IsNaN(share) {
		return
	}
	eighths := max(int(math.Round(clamp(share)*float64(h*8))), 1)
	for i := range h {
		if n := min(max(eighths-i*8, 0), 8); n > 0 {
			a.Cell(x, y-i, st, gl.Eighths[n])
		}
	}
}

// Spark draws values as columns, newest at the right; NaN is a gap. top is the value of a full column.
func (a Area) Spark(x, y, w, h, n int, at func(int) float64, top float64, fg theme.Role, gl *theme.Glyphs) {
	for i := range min(w, n) {
		v := at(n - 1 - i)
		if math.IsNaN(v) || top <= 0 {
			continue
		}
		a.Column(x+w-1-i, y, h, v/top, Fg(fg), gl)
	}
}

// Halves draws two heat values in one cell, one above the other.
func (a Area) Halves(x, y int, top, bottom theme.Role, gl *theme.Glyphs) {
	a.Cell(x, y, Style{FG: top, BG: bottom}, gl.Upper)
}

func clamp(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(v, 1)
}
