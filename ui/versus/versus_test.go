package versus

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// drawn returns a comparison as text.
func drawn(r *compare.Result, profile theme.Profile, glyphs *theme.Glyphs, w, h int) string {
	var g grid.Grid
	g.Reset(w, h)
	Draw(&g, r, theme.NewSkin(theme.Palettes()[0], profile, glyphs), 0)
	return g.Plain()
}

// TestGolden draws every outcome, a metric without an interval and one without data.
func TestGolden(t *testing.T) {
	viewtest.Golden(t, "compared_80x24.txt", drawn(viewtest.Compared(), theme.TrueColour, theme.Unicode, 80, 24))
	viewtest.Golden(t, "compared_160x45.txt", drawn(viewtest.Compared(), theme.TrueColour, theme.Unicode, 160, 45))
	viewtest.Golden(t, "ascii_160x45.txt", drawn(viewtest.Compared(), theme.NoColour, theme.Plain, 160, 45))
}
