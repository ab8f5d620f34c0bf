package pane

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Ratios of a gap to the median gap of its request, which determine its colour.
const (
	SlowGap  = 2.0               // coloured watch
	StallGap = store.StallFactor // coloured bad
	StripTop = 4.0               // scale of the strip
)

func GapStyle(ratio float64) grid.Style {
	switch {
	case ratio >= StallGap:
		return Bad.With(grid.Bold)
	case ratio >= SlowGap:
		return Watch
	}
	return grid.Fg(theme.SeriesP50)
}
