package grid

import (
	"math"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
)

// Places, sizes and shares of a failed computation.
var (
	extremeInts   = []int{math.MinInt, math.MinInt + 1, -1 << 40, -3, 0, 2, 1 << 40, math.MaxInt - 1, math.MaxInt}
	extremeShares = []float64{math.NaN(), math.Inf(-1), -1.7e308, -1, 0, 5e-324, 0.5, 1, 4e9, 1.7e308, math.Inf(1)}
)

// Primitives draw inside of their area and visit only its cells: one that visited all requested cells would not return.
func TestPrimitivesClipFirst(t *testing.T) {
	var g, other Grid
	gl := colour.Glyphs
	st := Fg(theme.Text)
	for _, x := range extremeInts {
		for _, y := range extremeInts {
			for _, n := range extremeInts {
				g.Reset(6, 3)
				inner := g.All().Sub(1, 1, 4, 1)
				inner.Fill(x, y, n, st, '#')
				inner.Paint(x, y, n, theme.Accent, Reverse)
				inner.Clip(x, y, n, st, "word")
				inner.Elide(x, y, n, st, "word", '…')
				inner.Right(x, y, st, "word")
				inner.Under(x, y, st, '#')
				inner.Halves(x, y, theme.Accent, theme.Bad, gl)
				inner.Sub(x, y, n, n).Fill(0, 0, 9, st, '#')
				other.Reset(6, 3)
				other.Area(Rect{x, y, n, n}).Frame(st, gl)
				l := inner.Line(x/4, y)
				l.Put(st, "word").Gap(n/4).Put(st, "word").Tail(n/4, st, "word").Rune(st, '#')
				for _, share := range extremeShares {
					inner.Bar(x, y, n, share, theme.Data, true, gl)
					inner.Column(x, y, n, share, st, gl)
					inner.Stack(x, y, n, []Seg{{share, theme.Data, '#'}, {1 - share, theme.Dim, '-'}}, true, gl)
					values := func(int) float64 { return share }
					inner.Spark(x, y, n, n, 3, values, 1, theme.Data, colour)
					inner.Filled(x, y, n, n, 3, values, share, theme.Data, theme.Dim, colour)
				}
				if row(&g, 0)+row(&g, 2) != strings.Repeat(" ", 12) || row(&g, 1)[0] != ' ' || !strings.HasSuffix(row(&g, 1), " ") {
					t.Fatalf("at %d, %d, size %d: draws outside:\n%s", x, y, n, g.Plain())
				}
			}
		}
	}
}

// A chart draws values and scales of any size, and clamps values to the scale.
func TestChartOfExtremes(t *testing.T) {
	for _, top := range append(extremeShares, 1e300, 8e300, math.MaxFloat64, math.SmallestNonzeroFloat64) {
		for _, v := range append(extremeShares, math.MaxFloat64) {
			var g Grid
			for _, size := range [][2]int{{30, 9}, {250, 70}, {12, 2}, {1, 1}} {
				g.Reset(size[0], size[1])
				for _, end := range []float64{top, NiceTop(top), NiceTop(v)} {
					Curves{
						N: 3, At: func(_, i int) float64 { return v / float64(i) }, Roles: []theme.Role{theme.SeriesP50}, Top: end,
						Label: func(float64, float64) string { return "1" },
					}.Draw(g.All(), colour)
				}
			}
			if end := NiceTop(v); end < 0 || math.IsNaN(end) || math.IsInf(end, 0) || v > 0 && !math.IsInf(v, 0) && end <= 0 {
				t.Errorf("NiceTop(%v) = %v", v, end)
			}
		}
	}
}

// Boxes that touch share one line in ASCII, and keep their own in box drawing.
func TestBoxesShareLinesInASCII(t *testing.T) {
	draw := func(gl *theme.Glyphs) string {
		var g Grid
		g.Reset(8, 6)
		for _, r := range []Rect{{0, 0, 4, 3}, {4, 0, 4, 3}, {0, 3, 8, 3}} {
			g.Area(r).Frame(Fg(theme.Border), gl)
		}
		return g.Plain()
	}
	for _, c := range []struct {
		gl   *theme.Glyphs
		want string
	}{
		{theme.Plain, "+---+--+\n|   |  |\n|   |  |\n+------+\n|      |\n+------+"},
		{theme.Unicode, "╭──╮╭──╮\n│  ││  │\n╰──╯╰──╯\n╭──────╮\n│      │\n╰──────╯"},
	} {
		if got := strings.TrimSpace(draw(c.gl)); got != c.want {
			t.Errorf("ASCII %v:\n%s\nwant\n%s", c.gl.ASCII, got, c.want)
		}
	}
}
