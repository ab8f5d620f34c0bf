package ui

import (
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// dialog covers an area with a box that has a title, and a hint if it fits, in its border.
func dialog(a grid.Area, title, hint string, gl *theme.Glyphs) {
	for y := range a.H {
		a.Fill(0, y, a.W, grid.Fg(theme.Text), ' ')
	}
	a.Frame(grid.Fg(theme.BorderFocus), gl)
	a.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), " "+title+" ")
	if grid.Width(hint)+6 < a.W {
		a.Right(a.W-2, a.H-1, grid.Fg(theme.Dim), " "+hint+" ")
	}
}
