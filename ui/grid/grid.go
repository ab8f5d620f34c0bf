// Package grid is the screen as cells: panes draw into areas, and each frame is encoded once, with runs of equal style
// merged. Drawing allocates nothing in steady state.
package grid

import (
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/theme"
)

// Attr is a set of text attributes of a cell.
type Attr uint8

// The attributes, which combine.
const (
	Bold Attr = 1 << iota
	Faint
	Underline
	Reverse
)

// Style is the style of a cell. The zero value of BG is the theme's background.
type Style struct {
	FG, BG theme.Role
	Attr   Attr
}

// Fg returns a style on the theme's background.
func Fg(r theme.Role) Style { return Style{FG: r} }

// On returns the style on another background.
func (s Style) On(bg theme.Role) Style { s.BG = bg; return s }

// With returns the style with more attributes.
func (s Style) With(a Attr) Style { s.Attr |= a; return s }

// cell is one cell of 8 bytes; 200x60 cells are 94 KiB.
type cell struct {
	r     rune // below 0: index -r-1 of the grid's clusters
	style Style
	w     uint8 // 0: the right half of a wide character
}

// Grid is a screen of W by H cells.
type Grid struct {
	W, H     int
	cells    []cell
	clusters []string // characters with combining marks
	out      []byte
}

// Reset resizes the grid to w by h blank cells.
func (g *Grid) Reset(w, h int) {
	g.W, g.H = max(w, 0), max(h, 0)
	if n := g.W * g.H; cap(g.cells) < n {
		g.cells = make([]cell, n)
	} else {
		g.cells = g.cells[:n]
	}
	g.clusters = g.clusters[:0]
	blank := cell{r: ' ', style: Style{FG: theme.Text}, w: 1}
	for i := range g.cells {
		g.cells[i] = blank
	}
}

// set writes one rune of width w and blanks the rest of a wide character that it covers in part. It must fit.
func (g *Grid) set(x, y int, r rune, w uint8, st Style) {
	i := y*g.W + x
	if g.cells[i].w == 0 && x > 0 {
		g.cells[i-1].r, g.cells[i-1].w = ' ', 1
	}
	if end := x + int(w); end < g.W && g.cells[i+int(w)].w == 0 {
		g.cells[i+int(w)].r, g.cells[i+int(w)].w = ' ', 1
	}
	g.cells[i] = cell{r, st, w}
	if w == 2 {
		g.cells[i+1] = cell{' ', st, 0}
	}
}

// combine adds a combining mark to the cell before (x, y).
func (g *Grid) combine(x, y int, mark rune) {
	i := y*g.W + x - 1
	if x > 1 && g.cells[i].w == 0 {
		i--
	}
	c := &g.cells[i]
	text := string(c.r)
	if c.r < 0 {
		text = g.clusters[-c.r-1]
	}
	if len(text) > 4*utf8.UTFMax {
		return
	}
	g.clusters = append(g.clusters, text+string(mark))
	c.r = rune(-len(g.clusters))
}

// visible replaces characters that the caller failed to sanitise.
func visible(r rune) rune {
	if !clean.Safe(r) {
		return clean.Replacement
	}
	return r
}
