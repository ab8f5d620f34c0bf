package grid

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func row(g *Grid, y int) string { return strings.Split(g.Plain(), "\n")[y] }

func TestWideCharacters(t *testing.T) {
	for _, c := range []struct {
		name, want string
		draw       func(Area)
	}{
		{"fit", "日本  ", func(a Area) { a.Text(0, 0, Fg(theme.Text), "日本") }},
		{"half is dropped", " 日本…", func(a Area) { a.Text(1, 0, Fg(theme.Text), "日本語") }},
		{"left half overwritten", "x 本  ", func(a Area) { a.Text(0, 0, Fg(theme.Text), "日本"); a.Cell(0, 0, Fg(theme.Text), 'x') }},
		{"right half overwritten", " x本  ", func(a Area) { a.Text(0, 0, Fg(theme.Text), "日本"); a.Cell(1, 0, Fg(theme.Text), 'x') }},
		{"wide over two halves", " 語   ", func(a Area) { a.Text(0, 0, Fg(theme.Text), "日本"); a.Text(1, 0, Fg(theme.Text), "語") }},
		{"combining", "e\u0301日\u0302   ", func(a Area) { a.Text(0, 0, Fg(theme.Text), "e\u0301日\u0302") }},
		{"unsanitised", "\uFFFD[31m\uFFFD", func(a Area) { a.Text(0, 0, Fg(theme.Text), "\x1b[31m\u009b") }},
		{"elided", "abcde…", func(a Area) { a.Elide(0, 0, 6, Fg(theme.Text), "abcdefgh", '…') }},
		{"elided before a wide one", "日本… ", func(a Area) { a.Elide(0, 0, 6, Fg(theme.Text), "日本語語", '…') }},
		{"outside", "      ", func(a Area) {
			a.Text(0, 3, Fg(theme.Text), "x")
			a.Text(-1, 0, Fg(theme.Text), "x")
			a.Cell(6, 0, Fg(theme.Text), 'x')
		}},
	} {
		var g Grid
		g.Reset(6, 1)
		c.draw(g.All())
		if got := row(&g, 0); got != c.want || Width(got) != 6 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A sub-area never draws outside of its parent, for any rectangle.
func TestAreasClip(t *testing.T) {
	for _, r := range []Rect{{-5, -5, 8, 8}, {2, 1, 100, 100}, {9, 9, 3, 3}, {1, 1, -4, 2}, {0, 0, 0, 0}} {
		var g Grid
		g.Reset(6, 3)
		inner := g.All().Sub(1, 1, 4, 1).Sub(r.X, r.Y, r.W, r.H)
		for y := -2; y < 5; y++ {
			inner.Fill(-3, y, 20, Fg(theme.Text), '#')
			inner.Paint(-3, y, 20, theme.Accent, Reverse)
		}
		if row(&g, 0)+row(&g, 2) != strings.Repeat(" ", 12) || row(&g, 1)[0] != ' ' || row(&g, 1)[5] != ' ' {
			t.Errorf("%+v draws outside:\n%s", r, g.Plain())
		}
	}
}

func TestASCIIShowsOnlyASCII(t *testing.T) {
	var g Grid
	g.Reset(30, 1)
	g.All().Text(0, 0, Fg(theme.Text), "620 µs 3× 日 e\u0301 “a” – … 40 °C")
	if got, want := g.Encode(plain), "620 us 3x ?? ? \"a\" - ~ 40  C  "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A bar's parts keep their shares, and any bar above 0 has at least one cell.
func TestStack(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   string
	}{
		{[]float64{0.5, 0.5}, "LLLLLRRRRR"},
		{[]float64{0.3, 0.3}, "LLLRRR    "},
		{[]float64{0.04, 0.92, 0.04}, "RRRRRRRRRR"},
		{[]float64{0.001}, "L         "},
		{[]float64{0, 0}, "          "},
		{[]float64{0.7, 0.7}, "LLLLLLLRRR"},
	} {
		var g Grid
		g.Reset(10, 1)
		var segs []Seg
		for i, s := range c.shares {
			segs = append(segs, Seg{s, theme.PartLoad, theme.Plain.Fills[i]})
		}
		g.All().Stack(0, 0, 10, segs, false, theme.Plain)
		if got := row(&g, 0); got != c.want {
			t.Errorf("%v: %q, want %q", c.shares, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		w    int
		want []string
	}{
		{"the quick brown fox", 10, []string{"the quick", "brown fox"}},
		{"antidisestablishment", 8, []string{"antidise", "stablish", "ment"}},
		{"日本語テキスト", 5, []string{"日本", "語テ", "キス", "ト"}},
		{"a\n\nb\n", 5, []string{"a", "", "b", ""}},
		{"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		{"anything", 0, nil},
	} {
		got := Wrap(nil, c.in, c.w)
		if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
			t.Errorf("%q at %d: %q, want %q", c.in, c.w, got, c.want)
		}
	}
}

// Wrapping drops only the spaces and newlines at which it breaks, and no line is too wide.
func FuzzWrap(f *testing.F) {
	f.Add("the quick brown fox", 10)
	f.Add("日本語 テキスト\n\n", 3)
	f.Add("e\u0301\u0302 x\ty", 1)
	f.Fuzz(func(t *testing.T, in string, w int) {
		s := sanitize.Text(in)
		w = 1 + (w%80+80)%80
		lines := Wrap(nil, s, w)
		drop := strings.NewReplacer(" ", "", "\n", "")
		if drop.Replace(strings.Join(lines, "")) != drop.Replace(s) {
			t.Fatalf("%q at %d became %q", s, w, lines)
		}
		for _, l := range lines {
			if Width(l) > w && w > 1 {
				t.Fatalf("%q is wider than %d", l, w)
			}
		}
	})
}
