package grid

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// drawn returns the rows of a chart, without trailing spaces.
func drawn(k Curves, w, h int, skin *theme.Skin) []string {
	var g Grid
	g.Reset(w, h)
	k.Draw(g.All(), skin)
	rows := strings.Split(strings.TrimSuffix(g.Plain(), "\n"), "\n")
	for y := range rows {
		rows[y] = strings.TrimRight(rows[y], " ")
	}
	return rows
}

// curve returns curves of one series.
func curve(top float64, values ...float64) Curves {
	return Curves{
		N: len(values), At: func(_, i int) float64 { return values[i] }, Roles: []theme.Role{theme.SeriesP50}, Top: top,
		Label: func(v, _ float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }, // short, as on the screen
	}
}

// The newest point is at the right edge, a value is on the row of its label, and a gap stays empty.
func TestChartPlacesPoints(t *testing.T) {
	values := []float64{4, 4, 4, math.NaN(), 0, 0, 2, 2, 2}
	for name, k := range map[*theme.Skin]string{
		colour: `
4 ┤                  ⠤⠤⠤
  │
3 ┤
  │
2 ┤                        ⢠⠤⠤
  │                        ⢸
1 ┤                        ⡜
  │                        ⡇
0 ┤                      ⠤⠤⠃`,
		plain: `
4 +                  ****
  |
3 +
  |
2 +                        ***
  |                        *
1 +                        *
  |                        *
0 +                      ***`,
	} {
		want := strings.Split(strings.TrimPrefix(k, "\n"), "\n")
		for y, got := range drawn(curve(4, values...), 30, 9, name) {
			if got != want[y] {
				t.Errorf("row %d is %q, want %q", y, got, want[y])
			}
		}
	}
}

// A dot of a value is in the row whose range contains the value, on the dot that is nearest to it, and only 0 is on the
// dot of 0.
func TestDotsAreWhereTheScaleSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := NiceTop(math.Pow(10, rapid.Float64Range(-9, 12).Draw(t, "magnitude")))
		v := top * rapid.Float64Range(0, 1).Draw(t, "share")
		s := scale{rows: rapid.IntRange(2, 70).Draw(t, "rows"), top: top}
		exact := (float64(s.rows) - 0.5 - v/top*float64(s.rows-1)) * dotRows
		if d := float64(s.dot(v)) + 0.5 - exact; math.Abs(d) > 1.5+1e-6 || v > top/float64(s.rows*dotRows) && math.Abs(d) > 0.5+1e-6 {
			t.Fatalf("%v of %v on %d rows is on dot %d, exactly %v", v, top, s.rows, s.dot(v), exact)
		}
		if v > 0 && s.dot(v) >= s.dot(0) {
			t.Fatalf("%v of %v on %d rows is on the dot of 0", v, top, s.rows)
		}
		if s.dot(0)/dotRows != s.rows-1 || s.dot(top)/dotRows != 0 {
			t.Fatalf("%d rows: 0 is on row %d, the top on row %d", s.rows, s.dot(0)/dotRows, s.dot(top)/dotRows)
		}
	})
}

// For values and sizes of any kind, and on both axes: labels differ, each is on the row of its value, and a column is
// empty only where nothing was measured.
func TestChartsShowWhatWasMeasured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Custom(func(t *rapid.T) float64 {
			if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				return math.NaN()
			}
			return math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "log10")) * float64(rapid.IntRange(0, 1).Draw(t, "zero"))
		})
		values := rapid.SliceOfN(value, 1, 80).Draw(t, "values")
		top := 0.0
		for _, v := range values {
			if v > top {
				top = v
			}
		}
		if top = NiceTop(top); top == 0 {
			return
		}
		k := curve(top, values...)
		k.Log = rapid.Bool().Draw(t, "log")
		k.Fill = rapid.Bool().Draw(t, "fill")
		skin := rapid.SampledFrom([]*theme.Skin{colour, plain}).Draw(t, "skin")
		w, h := rapid.IntRange(20, 90).Draw(t, "width"), rapid.IntRange(2, 40).Draw(t, "height")
		rows := drawn(k, w, h, skin)
		seen := map[string]bool{}
		axis := -1
		for y, row := range rows {
			label, rest, found := strings.Cut(row, string(skin.Glyphs.TeeRight))
			if !found || strings.TrimSpace(label) == "" && axis >= 0 {
				continue
			}
			if label = strings.TrimSpace(label); seen[label] {
				t.Fatalf("row %d repeats label %q:\n%s", y, label, strings.Join(rows, "\n"))
			}
			seen[label] = true
			axis = len([]rune(row)) - len([]rune(rest))
		}
		if skin == plain {
			return // a line of characters may start one column early
		}
		for x := axis; x < w; x++ {
			blank := true
			for _, row := range rows {
				if r := []rune(row); x < len(r) && r[x] != ' ' {
					blank = false
				}
			}
			i := len(values) - w + x
			if measured := i >= 0 && !math.IsNaN(values[i]); measured == blank {
				t.Fatalf("column %d measured %v, blank %v:\n%s", x, measured, blank, strings.Join(rows, "\n"))
			}
		}
	})
}

// Powers of ten of a log axis are on rows at equal distances, above a row of 0.
func TestLogAxis(t *testing.T) {
	k := curve(1000, 0, 1, 10, 100, 1000)
	k.Log = true
	want := strings.Split(`1000 ┤                    ⢠
 100 ┤                   ⢠⠃
  10 ┤                  ⢠⠃
   1 ┤                 ⢠⠃
   0 ┤                ⠤⠃`, "\n")
	for y, got := range drawn(k, 27, 5, colour) {
		if got != want[y] {
			t.Errorf("row %d is %q, want %q", y, got, want[y])
		}
	}
}

// A fill is between two series, ends above the line of the lower one, and is omitted without colour.
func TestFillIsBetweenSeries(t *testing.T) {
	two := func(s, _ int) float64 { return []float64{3, 1}[s] }
	k := Curves{N: 3, At: two, Roles: []theme.Role{theme.SeriesP99, theme.SeriesP50}, Top: 4, Label: curve(4).Label, Fill: true}
	mono := theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode)
	for skin, want := range map[*theme.Skin]string{colour: "  ⣤⣿⣿⣿⠤  ", mono: "  ⠤   ⠠  "} {
		got := ""
		for _, row := range drawn(k, 20, 9, skin) {
			r := []rune(row + strings.Repeat(" ", 20))
			got += string(r[18])
		}
		if got != want {
			t.Errorf("the column is %q, want %q", got, want)
		}
	}
}

// A stall is marked above its dot, also in the highest row.
func TestStallsAreMarked(t *testing.T) {
	k := curve(4, 2, 4)
	k.Stall = func(int) bool { return true }
	rows := drawn(k, 20, 9, colour)
	if first, below := []rune(rows[0]), []rune(rows[3]); first[19] != '▲' || below[18] != '▲' {
		t.Errorf("stalls are not marked:\n%s", strings.Join(rows, "\n"))
	}
}

func TestChartWithoutDataDrawsNothing(t *testing.T) {
	for _, k := range []Curves{{}, {N: 3}, {N: 3, Top: math.NaN()}, {N: 3, Top: -1}, {Top: 3}} {
		var g Grid
		g.Reset(30, 9)
		k.Draw(g.All(), plain)
		if strings.TrimSpace(g.Plain()) != "" {
			t.Errorf("%+v drew %q", k, g.Plain())
		}
	}
}
