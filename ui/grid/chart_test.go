package grid

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

var (
	colour = theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)
	plain  = theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)
)

func TestNiceTop(t *testing.T) {
	for v, want := range map[float64]float64{
		0.7: 0.8, 1: 1, 1.01: 2, 2.4: 3, 4.2: 5, 5.5: 6, 7: 8, 8.1: 10, 99: 100, 1604: 2000, 6.96e6: 8e6, 0: 0, -3: 0, math.Inf(1): 0, math.NaN(): 0,
	} {
		if got := NiceTop(v); math.Abs(got-want) > 1e-9*want {
			t.Errorf("NiceTop(%v) = %v, want %v", v, got, want)
		}
	}
}

// For every scale and height, the labels are short, unique numbers on rows at equal distances, with both ends labelled.
func TestTicksAreTidy(t *testing.T) {
	for _, top := range []float64{1, 2, 3, 4, 5, 6, 8, 10, 0.3, 0.06, 2000, 8e6} {
		for h := 2; h <= 60; h++ {
			steps, rows := ticks(top, h)
			if (rows-1)%steps != 0 || rows > h || h-rows > max(1, h/8) && h > 5 {
				t.Fatalf("top %v, %d rows: %d steps on %d rows", top, h, steps, rows)
			}
			if steps > 1 && (rows-1)/steps < 2 {
				t.Fatalf("top %v, %d rows: labels on every row", top, h)
			}
			if h >= 5 && steps < 2 {
				t.Fatalf("top %v, %d rows: only the ends are labelled", top, h)
			}
			step := strconv.FormatFloat(top/float64(steps), 'g', 4, 64)
			if digits := strings.Trim(strings.ReplaceAll(step, ".", ""), "0"); len(digits) > 2 && !strings.Contains(step, "e+") {
				t.Fatalf("top %v, %d rows: a step is %s", top, h, step)
			}
		}
	}
}

// The newest point is at the right edge, a value is on the row of its label, and a gap stays empty.
func TestChartPlacesPoints(t *testing.T) {
	var g Grid
	var c Chart
	g.Reset(30, 9)
	values := []float64{4, 4, 4, math.NaN(), 0, 0, 2, 2, 2}
	c.Draw(g.All(), Curves{
		N: len(values), At: func(_, i int) float64 { return values[i] }, Roles: []theme.Role{theme.SeriesP50}, Top: 4,
		Label: func(v, _ float64) string { return strconv.Itoa(int(v)) },
	}, colour)
	want := strings.Split(strings.TrimPrefix(`
4 ┤                  ╶──╴
  │
3 ┤
  │
2 ┤                        ╭──
  │                        │
1 ┤                        │
  │                        │
0 ┤                      ╶─╯`, "\n"), "\n")
	for y, row := range strings.Split(strings.TrimSuffix(g.Plain(), "\n"), "\n") {
		if got := strings.TrimRight(row, " "); got != want[y] {
			t.Errorf("row %d is %q, want %q", y, got, want[y])
		}
	}
}

func TestChartWithoutDataDrawsNothing(t *testing.T) {
	var c Chart
	for _, k := range []Curves{{}, {N: 3}, {N: 3, Top: math.NaN()}, {N: 3, Top: -1}, {Top: 3}} {
		var g Grid
		g.Reset(30, 9)
		c.Draw(g.All(), k, plain)
		if strings.TrimSpace(g.Plain()) != "" {
			t.Errorf("%+v drew %q", k, g.Plain())
		}
	}
}
