package theme

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// Text needs 4.5:1 on its background (WCAG 2.2 AA), graphics 3:1 where the terminal shows the palette's own colours.
func TestTextMeetsWCAG(t *testing.T) {
	for _, p := range Palettes() {
		for profile := Colours16; profile < NumProfiles; profile++ {
			pairs := func(fgs []Role, bg Role, need float64) {
				for _, fg := range fgs {
					got := Contrast(p.Shown(fg, profile), p.Shown(bg, profile))
					if got < need {
						t.Errorf("%s %s: role %d on %d is %.2f:1, needs %.1f", p.Name, profile, fg, bg, got, need)
					}
				}
			}
			pairs([]Role{
				Title, Text, Dim, Data, Accent, Good, Watch, Bad, SeriesP50, SeriesP99, SeriesDecode, SeriesPrefill, SeriesRead, SeriesWrite,
			}, Background, 4.5)
			pairs([]Role{Title, Text, Data}, Select, 4.5)
			for _, bg := range []Role{Accent, Good, Watch, Bad, Cursor} {
				pairs([]Role{OnBadge}, bg, 4.5)
			}
			if profile > Colours16 {
				pairs(PartRoles(), Background, 3)
			}
		}
	}
}

// The cursor of a heat map is far from every colour of the map.
func TestCursorIsNoHeat(t *testing.T) {
	for _, p := range Palettes() {
		c := p.RGB(Cursor)
		for level := Heat0; level < NumRoles; level++ {
			h := p.RGB(level)
			if d := math.Hypot(math.Hypot(float64(c.R)-float64(h.R), float64(c.G)-float64(h.G)), float64(c.B)-float64(h.B)); d < 100 {
				t.Errorf("%s: the cursor %v is near heat level %d, %v", p.Name, c, level-Heat0, h)
			}
		}
	}
}

// Text is readable on every level of the heat ramp.
func TestTextOnHeat(t *testing.T) {
	for _, p := range Palettes() {
		for profile := Colours256; profile < NumProfiles; profile++ {
			s := NewSkin(p, profile, Unicode)
			for level := Heat0; level < NumRoles; level++ {
				if got := Contrast(p.Shown(s.OnHeat(level), profile), p.Shown(level, profile)); got < 4 {
					t.Errorf("%s %s: text on heat level %d is %.2f:1", p.Name, profile, level-Heat0, got)
				}
			}
		}
	}
}

func TestContrastOfKnownPairs(t *testing.T) {
	black, white, grey := RGB{}, RGB{255, 255, 255}, RGB{0x76, 0x76, 0x76}
	if got := Contrast(black, white); got != 21 {
		t.Errorf("black on white is %v, want 21", got)
	}
	if got := Contrast(grey, white); got < 4.54 || got > 4.55 {
		t.Errorf("#767676 on white is %v, want 4.54", got)
	}
}

// The heat ramp must get steadily lighter (dark themes) or darker (light themes) to be readable.
func TestHeatIsMonotonic(t *testing.T) {
	for _, p := range Palettes() {
		for i := Heat0 + 1; i < NumRoles; i++ {
			a, b := p.rgb[i-1].Luminance(), p.rgb[i].Luminance()
			if p.Dark && b < a || !p.Dark && b > a {
				t.Errorf("%s: heat level %d reverses (%.4f after %.4f)", p.Name, i-Heat0, b, a)
			}
		}
	}
	if Heat(-1) != Heat0 || Heat(0) != Heat0 || Heat(1) != NumRoles-1 || Heat(7) != NumRoles-1 {
		t.Error("Heat does not clamp to its ramp")
	}
}

func TestComponentsHaveDistinctLooks(t *testing.T) {
	for _, g := range []*Glyphs{Unicode, Plain} {
		seen := map[rune]bool{}
		for _, r := range g.Fills {
			if seen[r] {
				t.Errorf("fill %q is used twice", r)
			}
			seen[r] = true
		}
	}
	for _, p := range Palettes() {
		seen := map[RGB]bool{}
		for _, r := range PartRoles() {
			if seen[p.rgb[r]] {
				t.Errorf("%s: two components share %v", p.Name, p.rgb[r])
			}
			seen[p.rgb[r]] = true
		}
	}
}

// The four engine states and the four severities must differ without colour.
func TestStatesDifferByGlyph(t *testing.T) {
	for _, g := range []*Glyphs{Unicode, Plain} {
		for _, set := range [][]rune{{g.Live, g.Loading, g.Paused, g.Failed}, {g.Good, g.Info, g.Watch, g.Bad}, {g.Yes, g.No}} {
			seen := map[rune]bool{}
			for _, r := range set {
				if seen[r] {
					t.Errorf("%q is used for two states", r)
				}
				seen[r] = true
			}
		}
	}
}

func TestGlyphsAreOneCellWide(t *testing.T) {
	for _, g := range []*Glyphs{Unicode, Plain} {
		all := append([]rune{g.TopLeft, g.Upper, g.Swatch, g.Live, g.Watch, g.Cursor, g.Target, g.Ellipsis}, g.Shades...)
		all = append(append(append(append(all, g.Eighths[:]...), g.Block, g.Bar, g.Gauge, g.Track), g.Fills[:]...), g.Spinner...)
		for _, r := range all {
			if n := displaywidth.Rune(r); n != 1 {
				t.Errorf("%q is %d cells wide", r, n)
			}
			if g.ASCII && r > unicode.MaxASCII {
				t.Errorf("%q is in the ASCII set", r)
			}
		}
	}
}

func TestProfiles(t *testing.T) {
	if got := Detect(&bytes.Buffer{}, []string{"TERM=dumb"}); got != NoColour {
		t.Errorf("a file has profile %v", got)
	}
	for env, want := range map[string]bool{
		"LANG=en_GB.UTF-8": false, "LANG=C.UTF-8": false, "LANG=C": true, "LC_ALL=de_DE.ISO-8859-1": true, "TERM=linux": true, "": false,
	} {
		if got := PlainFont(strings.Fields(env)); got != want {
			t.Errorf("PlainFont(%q) = %v", env, got)
		}
	}
}

func TestSkinWritesSGR(t *testing.T) {
	p, ok := ByName("dark")
	if !ok || len(Names(Palettes())) < 4 {
		t.Fatal("themes are missing")
	}
	for profile, want := range map[Profile]string{NoColour: "", Colours16: "91", Colours256: "38;5;", TrueColour: "38;2;255;112;105"} {
		if got := NewSkin(p, profile, Unicode).Foreground(Bad); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: Bad is %q, want %q", profile, got, want)
		}
	}
	if got := NewSkin(p, Colours16, Unicode).Background(Bad); got != "101" {
		t.Errorf("background is %q", got)
	}
	if _, ok := ByName("nope"); ok {
		t.Error("found a theme that does not exist")
	}
}

// The grades of a series run from near the background to its colour; other roles have none.
func TestGrades(t *testing.T) {
	if Grade(Bad, 0.5) != Bad || Grade(SeriesP50, -1) != Grade0 || Grade(SeriesP50, 1) != Grade0+GradeLevels-1 || Grade(SeriesWrite, 9) != Heat0-1 {
		t.Error("grades are not clamped to their series")
	}
	for _, p := range Palettes() {
		for r := SeriesP50; r <= SeriesWrite; r++ {
			if p.RGB(Grade(r, 1)) != p.RGB(r) {
				t.Errorf("%s: the brightest grade of series %d is not its colour", p.Name, r)
			}
			for i := 1; i < GradeLevels; i++ {
				at := Grade(r, float64(i)/(GradeLevels-1))
				if Contrast(p.RGB(at), p.RGB(Background)) <= Contrast(p.RGB(at-1), p.RGB(Background)) {
					t.Errorf("%s: grade %d of series %d is not brighter than the one below", p.Name, i, r)
				}
			}
		}
	}
}
