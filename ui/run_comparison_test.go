package ui

import (
	"math"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// showing opens the comparison screen.
func showing(r *compare.Result, profile theme.Profile, ascii bool, w, h int) *comparison {
	c := newComparison(r, Config{Profile: profile, ASCII: ascii})
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return c
}

func TestGoldenComparison(t *testing.T) {
	viewtest.Golden(t, "comparison_120x36.ansi", showing(viewtest.Compared(), theme.TrueColour, false, 120, 36).View().Content)
}

// TestComparisonFitsEveryScreen draws every size with large, small and empty comparisons, and presses every key.
func TestComparisonFitsEveryScreen(t *testing.T) {
	huge := viewtest.Compared()
	for range 6 {
		huge.Rows = append(huge.Rows, huge.Rows...)
	}
	huge.Shares = [2][][]float64{}
	for range 94 {
		wide := make([]float64, 256)
		wide[7] = 1
		huge.Shares[0], huge.Shares[1] = append(huge.Shares[0], wide), append(huge.Shares[1], make([]float64, 256))
		huge.Experts = append(huge.Experts, compare.LayerDrift{})
	}
	odd := viewtest.Compared()
	for i := range odd.Rows {
		odd.Rows[i].Low, odd.Rows[i].High, odd.Rows[i].Change, odd.Rows[i].Threshold = math.NaN(), math.NaN(), math.Inf(1), math.Inf(1)
	}
	for name, r := range map[string]*compare.Result{"typical": viewtest.Compared(), "nothing": {}, "huge": huge, "odd": odd} {
		for _, size := range [][2]int{{0, 0}, {1, 1}, {7, 3}, {40, 8}, {80, 24}, {119, 17}, {300, 100}} {
			c := showing(r, theme.TrueColour, false, size[0], size[1])
			for _, key := range []string{"down", "end", "pgup", "t", "home", "up", "pgdown", "x"} {
				c.Update(keyPress(key))
				c.View()
				for y, line := range strings.Split(c.grid.Plain(), "\n") {
					if w := grid.Width(line); w > size[0] {
						t.Fatalf("%s at %v: line %d is %d cells wide", name, size, y, w)
					}
				}
			}
		}
	}
}

func TestComparisonCloses(t *testing.T) {
	for _, key := range []string{"q", "esc", "ctrl+c"} {
		c := showing(viewtest.Compared(), theme.TrueColour, false, 80, 24)
		if _, cmd := c.Update(keyPress(key)); cmd == nil {
			t.Errorf("%s does not close the screen", key)
		}
	}
}
