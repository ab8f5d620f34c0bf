package pane

import (
	"math"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

func shade(share float64, gl *theme.Glyphs) rune {
	if !(share > 0) {
		return gl.Shades[0]
	}
	n := len(gl.Shades) - 1
	return gl.Shades[1+int(min(share, 1)*float64(n-1)+0.5)]
}

// HeatCell draws a share of the heat scale, 0..1, in one cell: as colour, or as a fill level without colour.
func HeatCell(a grid.Area, f *Frame, x, y int, share float64) {
	if f.Skin.Colour() {
		a.Cell(x, y, Plain.On(theme.Heat(share)), ' ')
	} else {
		a.Cell(x, y, Data, shade(share, f.Skin.Glyphs))
	}
}

// HeatColumn draws one second of a heatmap: the share of count that each bucket holds, the first bucket at the bottom.
func HeatColumn[N uint32 | uint64](plot grid.Area, f *Frame, x int, buckets []N, count float64) {
	share := func(line, lines int) float64 {
		from := line * len(buckets) / lines
		to := max((line+1)*len(buckets)/lines, from+1)
		sum := 0.0
		for _, n := range buckets[from:to] {
			sum += float64(n)
		}
		return sum / count
	}
	halves := f.Skin.Colour() && !f.Skin.Glyphs.ASCII // a cell shows two values, one above the other
	for y := range plot.H {
		below := plot.H - 1 - y
		if !halves {
			heatCell(plot, f, x, y, share(below, plot.H))
			continue
		}
		top, bottom := shareHeat(share(2*below+1, 2*plot.H)), shareHeat(share(2*below, 2*plot.H))
		if top != theme.Background || bottom != theme.Background {
			plot.Halves(x, y, top, bottom, f.Skin.Glyphs)
		}
	}
}

// heatCell draws one share in one cell: as colour, or as a fill level without colour.
func heatCell(a grid.Area, f *Frame, x, y int, share float64) {
	if share <= 0 {
		return
	}
	if f.Skin.Colour() {
		a.Cell(x, y, grid.Fg(theme.Text).On(shareHeat(share)), ' ')
		return
	}
	shades := f.Skin.Glyphs.Shades
	a.Cell(x, y, Data, shades[1+int(heatOf(share)*float64(len(shades)-2)+0.5)])
}

// heatOf places a share on the scale 0..1 by its square root, which emphasises the few late ones.
func heatOf(share float64) float64 { return math.Sqrt(min(share, 1)) }

// shareHeat returns the colour of a share. Any share above 0 differs from the background.
func shareHeat(share float64) theme.Role {
	if share <= 0 {
		return theme.Background
	}
	const least = 0.18
	return theme.Heat(least + (1-least)*heatOf(share))
}

// HeatLegend explains the colours of a heatmap of a second's tokens or requests, where there is room.
func HeatLegend(l *grid.Line, f *Frame, of string) {
	if !f.Skin.Colour() {
		l.Fit(grid.Piece{Style: Dim, Words: "denser: more of the second's " + of + "  "})
		return
	}
	mark := string(f.Skin.Glyphs.Swatch)
	for _, share := range [...]float64{0.01, 0.1, 0.5, 1} {
		l.Fit(grid.Piece{Style: grid.Fg(shareHeat(share)), Words: mark}, grid.Piece{Style: Dim, Words: " " + metric.Percent(share) + " "})
	}
	l.Fit(grid.Piece{Style: Dim, Words: "of a second's " + of + "  "})
}
