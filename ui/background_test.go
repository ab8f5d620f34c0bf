package ui

import (
	"image/color"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

var onWhite, onBlack = tea.BackgroundColorMsg{Color: color.White}, tea.BackgroundColorMsg{Color: color.Black}

// detecting makes the model of a terminal whose background decides the theme.
func detecting(cfg Config) *app {
	cfg.Sessions = One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }})
	return newApp(cfg)
}

// The terminal is asked only if the answer may matter.
func TestTheBackgroundIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		asks bool
	}{
		{Config{DetectTheme: true, Profile: theme.TrueColour}, true},
		{Config{DetectTheme: true, Profile: theme.Colours16}, true},
		{Config{DetectTheme: true, Profile: theme.NoColour}, false},
		{Config{Theme: "dark", Profile: theme.TrueColour}, false},
	} {
		if asks := strings.Contains(c.cfg.terminalQueries(), ansi.RequestBackgroundColor); asks != c.asks {
			t.Errorf("%+v asks: %v", c.cfg, asks)
		}
	}
}

// A light background gets the light theme until the user chooses one; only a chosen theme is remembered.
func TestTheBackgroundDecidesTheTheme(t *testing.T) {
	name := func(a *app) string { return a.skin.Palette.Name }
	a := detecting(Config{DetectTheme: true, Profile: theme.TrueColour})
	for msg, want := range map[tea.BackgroundColorMsg]string{onWhite: "light", onBlack: "dark", {}: "dark"} {
		a.Update(msg)
		if name(a) != want || a.choices().Theme != "" {
			t.Errorf("on %v: theme %s, remembered %q", msg, name(a), a.choices().Theme)
		}
	}
	a.Update(onWhite)
	a.press("T", "down")
	a.Update(onBlack)
	if a.press("esc"); name(a) != "light" || a.choices().Theme != "" {
		t.Errorf("a preview leaves theme %s, remembered %q", name(a), a.choices().Theme)
	}
	a.press("T", "down", "enter")
	a.Update(onWhite)
	if name(a) != "contrast" || a.choices().Theme != "contrast" {
		t.Errorf("chosen contrast: theme %s, remembered %q", name(a), a.choices().Theme)
	}
	a = detecting(Config{Theme: "dark", Profile: theme.TrueColour})
	a.Update(onWhite)
	if name(a) != "dark" || a.choices().Theme != "dark" {
		t.Errorf("a remembered theme: %s, remembered %q", name(a), a.choices().Theme)
	}

	rows := someCandidates()
	c := choosing(&rows, theme.TrueColour, false, 80, 24)
	for range 2 {
		c.Update(onWhite)
	}
	if c.skin.Palette.Name != "light" {
		t.Error("the list of engines does not follow")
	}
	c.pressed("t")
	was := c.theme
	c.Update(onWhite)
	if was != c.theme {
		t.Error("the background overrides the theme key")
	}
}
