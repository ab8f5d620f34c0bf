package theme

import (
	"os"
	"strings"
	"testing"
)

// TestColoursAreDocumented checks that the documentation names the colour of each role.
func TestColoursAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roleNames {
		if !strings.Contains(string(doc), "`"+role+"`") {
			t.Errorf("docs/settings.md does not document the colour %s of theme files", role)
		}
	}
}

func TestThemeFiles(t *testing.T) {
	base, _ := ByName("light")
	before := *base
	p, err := Parse("mine", []byte("base = \"light\"\naccent = \"#Ff8000\"\nseries-decode = \"#102030\"\nheat = [\"#000000\", \"#ffffff\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "mine" || p.Dark || p.RGB(Accent) != (RGB{255, 128, 0}) || p.RGB(Heat0) != (RGB{}) || p.RGB(NumRoles-1) != (RGB{255, 255, 255}) {
		t.Errorf("parsed %+v", p)
	}
	if p.RGB(Text) != base.RGB(Text) || p.ansi != base.ansi || p.RGB(AreaDecode) == base.RGB(AreaDecode) || p.RGB(AreaPrefill) != base.RGB(AreaPrefill) {
		t.Error("the rest is not that of the base")
	}
	if *palettes[1] != before {
		t.Error("the base has changed")
	}
	if p, err := Parse("empty", nil); err != nil || p.RGB(Text) != palettes[0].RGB(Text) || !p.Dark {
		t.Errorf("an empty file: %v", err)
	}
	if p, err := Parse("paper", []byte(`background = "#ffffff"`)); err != nil || p.Dark {
		t.Errorf("a light background on the dark base: %v", err)
	}
}

func TestInvalidThemeFiles(t *testing.T) {
	for text, want := range map[string]string{
		`base = "mine"`:              "base: must be one of dark, light",
		`base = 7`:                   "base: must be one of dark, light",
		`acent = "#ff8000"`:          `unknown key "acent": a theme has base, heat`,
		`accent = "orange"`:          `accent: must be a colour like "#6cb6ff"`,
		`accent = "#ff80"`:           "accent: must be a colour",
		`accent = "#+f8000"`:         "accent: must be a colour",
		`accent = 7`:                 "accent: must be a colour",
		`heat = "#ff8000"`:           "heat: must be a list of 2 to 32 colours",
		`heat = ["#ff8000"]`:         "heat: must be a list of 2 to 32 colours",
		`heat = ["#ff8000", "blue"]`: "heat: must be a colour",
		`accent =`:                   "toml: line 1",
	} {
		if _, err := Parse("mine", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"base = \"light\"\naccent = \"#ff8000\"", `heat = ["#000000", "#ffffff"]`, "[table]\na = 1", "\x00", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("mine", text)
		if (p == nil) != (err != nil) {
			t.Fatalf("%v with %v", p, err)
		}
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
			t.Errorf("error %q", err)
		}
	})
}
