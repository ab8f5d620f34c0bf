package ui

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// typed opens the palette and types into it.
func (a *app) typed(text string) {
	a.press(":")
	for _, r := range text {
		a.press(map[bool]string{true: "space", false: string(r)}[r == ' '])
	}
}

func TestPaletteSetsValues(t *testing.T) {
	for _, c := range []struct {
		typed, note string
		holds       func(*app, *calls) bool
	}{
		{"theme light", "theme: light", func(a *app, _ *calls) bool { return a.skin.Palette.Name == "light" }},
		{"theme con", "theme: contrast", func(a *app, _ *calls) bool { return a.skin.Palette.Name == "contrast" }},
		{"pace 0", "pace: 0", func(_ *app, k *calls) bool { return slices.Equal(k.paces, []float64{0}) }},
		{"pace 7.5", "pace: 7.5", func(_ *app, k *calls) bool { return slices.Equal(k.paces, []float64{7.5}) }},
		{"window 10s", "window: 10s", func(a *app, _ *calls) bool { return a.panes.Window == metric.TenSeconds }},
		{"window 10 s", "window: 10 s", func(a *app, _ *calls) bool { return a.panes.Window == metric.TenSeconds }},
		{"window 1m", "window: 1m", func(a *app, _ *calls) bool { return a.panes.Window == metric.Minute }},
		{"phase both", "phase: both", func(a *app, _ *calls) bool { return a.panes.Phase == metric.Both }},
		{"layout router", "layout: router", func(a *app, _ *calls) bool { return a.overview.Layout.Name() == "router" }},
		{"fps 2", "fps: 2", func(a *app, _ *calls) bool { return a.cfg.FPS == 2 }},
		{"ascii on", "ascii: on", func(a *app, _ *calls) bool { return a.skin.Glyphs.ASCII }},
		{"mouse off", "mouse: off", func(a *app, _ *calls) bool { return a.View().MouseMode == tea.MouseModeNone }},
		{"low-bandwidth on", "low-bandwidth: on", func(a *app, _ *calls) bool {
			return a.cfg.FPS == lowFPS && a.skin.Profile == theme.Colours256 && a.throttle.rate == lowRate
		}},
	} {
		a, k := withCalls(t)
		a.typed(c.typed)
		a.press("enter")
		if !c.holds(a, k) || a.palette.open {
			t.Errorf(":%s does not set it", c.typed)
		}
		holds(t, a, c.note)
	}
}

// A value that cannot be set is one line that says what to write; nothing changes and the palette stays open.
func TestPaletteRefusesValues(t *testing.T) {
	for typed, want := range map[string]string{
		"theme purple": "theme: use dark, light, contrast, colorblind", "pace -1": "pace: use a number from 0", "pace x": "pace: use a number from 0",
		"pace NaN": "pace: use a number", "window 7s": "window: use 1s, 10s, 1m, session", "phase x": "phase: use decode, prompt",
		"layout gpu": `layout: use one of default, latency, machine, reading, router`, "fps 31": "fps: use a whole number from 1 to 30", "ascii maybe": "ascii: use on or off",
	} {
		a, k := withCalls(t)
		before := a.choices()
		a.typed(typed)
		a.press("enter")
		holds(t, a, want)
		if !a.palette.open || a.choices() != before || len(k.paces) > 0 || a.overview.Layout.Name() != overview.LayoutDefault {
			t.Errorf(":%s changed something", typed)
		}
	}
}

// Values that do nothing now are not offered.
func TestPaletteOffersValuesThatApply(t *testing.T) {
	a, _ := withCalls(t)
	a.changeSession(func(x *Session) { x.Actions = view.Actions{} })
	for _, s := range settings(a) {
		if s.name == "pace" || s.name == "speed" {
			t.Errorf("%s is offered", s.name)
		}
	}
	a.typed("speed 5")
	holds(t, a, "speed: only a recording has a speed")
	p := newPlayer()
	replay := openReplay(p, 120, 36)
	replay.typed("pace 5")
	holds(t, replay, "pace: a recording has no pace to set")
	replay.press("esc")
	replay.typed("speed 5x")
	replay.press("enter")
	if p.Speed != 5 {
		t.Errorf("speed %v", p.Speed)
	}
}

// tab completes the name of a setting, then its value; enter on the name lists the values.
func TestPaletteCompletes(t *testing.T) {
	a, _ := withCalls(t)
	a.typed("wind")
	a.press("down", "tab", "1", "0", "tab")
	if got := a.palette.line.Text(); got != "window 10s" {
		t.Errorf("completed %q", got)
	}
	a.press("esc")
	a.typed("low-b")
	a.press("enter")
	if got := a.palette.line.Text(); got != "low-bandwidth " || !a.palette.open {
		t.Errorf("enter shows %q", got)
	}
	holds(t, a, "2 of 2")
}

// Moving over themes and layouts shows them; enter keeps the one on the screen, and esc, a click elsewhere and another
// search restore the one before.
func TestPreviews(t *testing.T) {
	look := func(a *app) string { return a.skin.Palette.Name + " " + a.overview.Layout.Name() }
	for _, key := range []string{"T", "L"} {
		a, _ := withCalls(t)
		before := look(a)
		seen := map[string]bool{}
		a.press(key)
		if look(a) != before {
			t.Errorf("%s begins with %s", key, look(a))
		}
		for range 5 {
			seen[look(a)] = true
			a.press("down")
		}
		if len(seen) < 4 {
			t.Errorf("%s previews %v", key, seen)
		}
		shown := look(a)
		for name, leave := range map[string]func(){
			"esc":    func() { a.press("esc") },
			"click":  func() { a.Update(tea.MouseClickMsg{X: 1, Y: 1, Button: tea.MouseLeft}) },
			"search": func() { a.press("ctrl+u", "q"); a.press("esc") },
			"no row": func() { a.press("z", "z", "esc") },
		} {
			a.press(key, "down", "down")
			a.View()
			if leave(); look(a) != before || a.palette.open {
				t.Errorf("%s in the list of %s leaves %q, want %q", name, key, look(a), before)
			}
		}
		a.press(key, "down", "down", "down", "down", "down", "enter")
		if look(a) != shown || a.palette.open {
			t.Errorf("enter keeps %q, want %q", look(a), shown)
		}
	}
}

// Switching the glyphs redraws all of the screen.
func TestASCIIIsSwitched(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 160, 45)
	a.View()
	a.typed("ascii on")
	a.press("enter")
	a.toast = ""
	b := open(viewtest.LiveSnapshot(), theme.TrueColour, true, 160, 45)
	if got, want := a.screen(), b.screen(); got != want {
		t.Errorf("switched:\n%s\nstarted so:\n%s", got, want)
	}
}

// The documented settings are those of the program; -update writes them.
func TestDocumentedSettings(t *testing.T) {
	const path, begin, end = "../docs/settings.md", "<!-- live -->\n", "<!-- /live -->"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(file), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section between %q and %q", path, begin, end)
	}
	want := "| command | sets |\n|---|---|\n"
	for _, s := range allSettings(keysOf(Config{})) {
		want += "| `:" + s.name + " " + strings.ReplaceAll(s.usage, "|", `\|`) + "` | " + strings.ReplaceAll(s.help, "|", `\|`) + " |\n"
	}
	if *viewtest.Update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != want {
		t.Errorf("out of date (run with -update):\n%s\nwant\n%s", was, want)
	}
}

// Themes of the user come after the built-in ones; a file that is no theme shows why and changes nothing.
func TestThemesOfTheUser(t *testing.T) {
	mine, err := theme.Parse("mine", []byte("background = \"#102030\""))
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(Config{
		Sessions: One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }}), Theme: "mine", Profile: theme.TrueColour,
		Themes: []*theme.Palette{mine}, BadThemes: map[string]error{"odd": errors.New("read odd.toml: no")},
	})
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	if a.skin.Palette != mine || a.choices().Theme != "mine" {
		t.Errorf("the theme is %s", a.skin.Palette.Name)
	}
	a.press("T")
	holds(t, a, "theme mine")
	holds(t, a, "read odd.toml: no")
	a.press("down", "enter")
	holds(t, a, "read odd.toml: no")
	if a.skin.Palette != mine {
		t.Errorf("a bad file shows theme %s", a.skin.Palette.Name)
	}
	a.press("t")
	if a.skin.Palette != theme.Palettes()[0] {
		t.Error("the theme key does not wrap around")
	}
}

// A remembered theme whose file has an error shows why at the start, and is remembered until the file is repaired.
func TestRememberedThemeWithAnError(t *testing.T) {
	a := newApp(Config{
		Sessions: One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }}), Theme: "odd",
		BadThemes: map[string]error{"odd": errors.New("read odd.toml: no")},
	})
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	holds(t, a, "read odd.toml: no")
	if a.choices().Theme != "odd" {
		t.Errorf("remembered %q", a.choices().Theme)
	}
	if a.press("t"); a.choices().Theme != a.skin.Palette.Name {
		t.Errorf("chosen %s, remembered %q", a.skin.Palette.Name, a.choices().Theme)
	}
}
