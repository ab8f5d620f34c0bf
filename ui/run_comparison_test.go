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

// compared returns a comparison of two points with all kinds of values.
func compared() *compare.Result {
	r := &compare.Result{
		Base: "before.json", New: "after.json\x1b[31m", Outcome: compare.Regressed, Relative: 0.03,
		Differences: []compare.Difference{{Name: "--threads", Base: "2", New: "1"}},
		Parts:       []compare.PartRow{{Name: "prompt", Base: 0.0178, New: 0.0216}, {Name: "queue", Base: 0.0002, New: 0.0028}, {Name: "other", New: 0.0001}},
	}
	for _, point := range []string{"32 tokens, 1 at a time", "512 tokens, 4 at a time"} {
		r.Rows = append(
			r.Rows,
			compare.Row{Point: point, Metric: "ttft", Unit: "s", Gate: true, Base: 0.004, New: 0.0042, Change: 0.05, Low: -0.12, High: 0.22, Threshold: 0.03, Outcome: compare.Unclear},
			compare.Row{Point: point, Metric: "tpot", Unit: "s", Gate: true, Base: 0.0008, New: 0.00088, Change: 0.1, Low: 0.08, High: 0.12, Threshold: 0.03, Outcome: compare.Regressed},
			compare.Row{Point: point, Metric: "e2el", Unit: "s", Gate: true, Base: 0.1, New: 0.099, Change: -0.01, Low: -0.02, High: 0.005, Threshold: 0.03},
			compare.Row{Point: point, Metric: "stil", Unit: "s", Base: 2e-5, New: 3e-4, Change: 14, Low: -1, High: math.Inf(1), Threshold: 10, Outcome: compare.Unclear},
			compare.Row{Point: point, Metric: "decode", Unit: "tokens/s", Base: 1250, New: 1136, Change: -0.09, Low: -0.1, High: -0.08, Threshold: 0.03, Outcome: compare.Regressed},
		)
	}
	for l := range 8 {
		base, next := make([]float64, 16), make([]float64, 16)
		for e := range base {
			base[e], next[e] = 1.0/16, 1.0/16+0.01*math.Sin(float64(l*16+e))
		}
		r.Shares[0], r.Shares[1] = append(r.Shares[0], base), append(r.Shares[1], next)
		r.Experts = append(r.Experts, compare.LayerDrift{Layer: l})
	}
	return r
}

// showing opens the comparison screen.
func showing(r *compare.Result, profile theme.Profile, ascii bool, w, h int) *comparison {
	c := newComparison(r, Config{Profile: profile, ASCII: ascii})
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return c
}

func TestGoldenComparison(t *testing.T) {
	frame := func(profile theme.Profile, w, h int) string {
		return showing(compared(), profile, profile == theme.NoColour, w, h).View().Content
	}
	viewtest.Golden(t, "comparison_80x24.txt", viewtest.StripStyles(frame(theme.TrueColour, 80, 24)))
	viewtest.Golden(t, "comparison_120x36.ansi", frame(theme.TrueColour, 120, 36))
	viewtest.Golden(t, "comparison_ascii_160x45.txt", viewtest.StripStyles(frame(theme.NoColour, 160, 45)))
}

// TestComparisonFitsEveryScreen draws every size with large, small and empty comparisons, and presses every key.
func TestComparisonFitsEveryScreen(t *testing.T) {
	huge := compared()
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
	odd := compared()
	for i := range odd.Rows {
		odd.Rows[i].Low, odd.Rows[i].High, odd.Rows[i].Change, odd.Rows[i].Threshold = math.NaN(), math.NaN(), math.Inf(1), math.Inf(1)
	}
	for name, r := range map[string]*compare.Result{"typical": compared(), "nothing": {}, "huge": huge, "odd": odd} {
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
		c := showing(compared(), theme.TrueColour, false, 80, 24)
		if _, cmd := c.Update(keyPress(key)); cmd == nil {
			t.Errorf("%s does not close the screen", key)
		}
	}
}
