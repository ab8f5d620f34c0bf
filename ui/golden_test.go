package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

var sizes = [][2]int{{80, 24}, {120, 36}, {160, 45}, {200, 60}}

// The overview in every layout size and every colour profile; the profile without colours uses ASCII.
func TestGoldenOverview(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for _, size := range sizes {
		for p := theme.NoColour; p < theme.NumProfiles; p++ {
			a := open(s, p, p == theme.NoColour, size[0], size[1])
			viewtest.Golden(t, fmt.Sprintf("overview_%dx%d_%s.ansi", size[0], size[1], p), a.View().Content)
		}
	}
}

// The overview in every other theme.
func TestGoldenThemes(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for i, p := range theme.Palettes()[1:] {
		a := open(s, theme.TrueColour, false, 120, 36)
		a.theme = i + 1
		a.applyTheme()
		viewtest.Golden(t, "theme_"+p.Name+".ansi", a.View().Content)
	}
}

// Each pane in full screen, as text.
func TestGoldenPanes(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for id := range overview.NumPanes {
		a := open(s, theme.TrueColour, false, 120, 36)
		a.zoom(id)
		viewtest.Golden(t, "zoom_"+strings.ReplaceAll(strings.ToLower(id.String()), " ", "_")+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// Help, prompt editor and pause.
func TestGoldenModes(t *testing.T) {
	s := viewtest.LiveSnapshot()
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
		viewtest.Golden(t, c.name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// Every state of a session has its own texts.
func TestGoldenStates(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		if sc.Name == "live" {
			continue
		}
		a := open(sc.Make().Snapshot(), theme.TrueColour, false, 100, 30)
		viewtest.Golden(t, "state_"+sc.Name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}
