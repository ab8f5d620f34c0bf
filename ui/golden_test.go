package ui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
)

var update = flag.Bool("update", false, "write the golden screens instead of comparing with them")

// golden compares a frame with its golden file, line by line.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	got += "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	is, want := strings.Split(got, "\n"), strings.Split(string(file), "\n")
	for y := range max(len(is), len(want)) {
		a, b := "(no line)", "(no line)"
		if y < len(is) {
			a = is[y]
		}
		if y < len(want) {
			b = want[y]
		}
		if a != b {
			t.Fatalf("%s: line %d differs (run with -update to accept it)\n got %q\nwant %q", name, y+1, a, b)
		}
	}
}

var sizes = [][2]int{{80, 24}, {120, 36}, {160, 45}, {200, 60}}

// The overview in every layout size and every colour profile; the profile without colours uses ASCII.
func TestGoldenOverview(t *testing.T) {
	s := liveSnapshot()
	for _, size := range sizes {
		for p := theme.NoColour; p < theme.NumProfiles; p++ {
			a := open(s, p, p == theme.NoColour, size[0], size[1])
			golden(t, fmt.Sprintf("overview_%dx%d_%s.ansi", size[0], size[1], p), a.View().Content)
		}
	}
}

// The overview in every other theme.
func TestGoldenThemes(t *testing.T) {
	s := liveSnapshot()
	for i, p := range theme.Palettes()[1:] {
		a := open(s, theme.TrueColour, false, 120, 36)
		a.theme = i + 1
		a.applyTheme()
		golden(t, "theme_"+p.Name+".ansi", a.View().Content)
	}
}

// Each pane in full screen, as text.
func TestGoldenPanes(t *testing.T) {
	s := liveSnapshot()
	for id := range overview.NumPanes {
		a := open(s, theme.TrueColour, false, 120, 36)
		a.zoom(id)
		golden(t, "zoom_"+strings.ReplaceAll(strings.ToLower(id.String()), " ", "_")+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// Help, prompt editor and pause.
func TestGoldenModes(t *testing.T) {
	s := liveSnapshot()
	for _, c := range []struct {
		name string
		keys []string
	}{
		{"help", []string{"?"}},
		{"help_end", []string{"?", "end"}},
		{"prompt_empty", []string{"p"}},
		{"prompt_suggested", []string{"p", "tab"}},
		{"paused", []string{"space"}},
	} {
		a := open(s, theme.TrueColour, false, 120, 36)
		a.press(c.keys...)
		golden(t, c.name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// Every state of a session has its own texts.
func TestGoldenStates(t *testing.T) {
	for _, sc := range scenes {
		if sc.name == "live" {
			continue
		}
		a := open(sc.make().drain(), theme.TrueColour, false, 100, 30)
		golden(t, "state_"+sc.name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}
