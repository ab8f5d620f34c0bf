package ui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/engines"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// someCandidates returns engines in every state.
func someCandidates() []engines.Candidate {
	reported := func(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }
	return []engines.Candidate{
		{
			Name: "llama.cpp", Model: "qwen3-30b-a3b", Address: "http://127.0.0.1:8080", State: "ready", Running: reported(2),
			Decode: event.Reading{V: 48.2, Origin: event.Derived}, Details: []string{"version b10582-e85caa81e, process 4711 (llama-server)"},
		},
		{
			Name: "Ollama", Model: "qwen3:30b-a3b", Address: "http://127.0.0.1:11434", State: "ready", Decode: event.Absent(event.NotYet),
			Details: []string{"version 0.33.0, process 901 (ollama serve)", "its llama-server: process 977, http://127.0.0.1:41233"},
		},
		{Name: "SGLang", Model: "Qwen/Qwen3-30B-A3B", Address: "http://127.0.0.1:30000", State: "ready", Running: reported(6), Waiting: reported(2), Decode: reported(388.1)},
		{Name: "vLLM", Model: "an-organisation/a-model-with-a-very-long-name\x1b[31m", Address: "http://127.0.0.1:8000", State: "needs a key", Blocked: "it needs a key: give it as LLMTOP_API_KEY"},
		{Name: "TGI", State: "not reachable", Blocked: "it runs in a network of its own, as containers do: attach to the port that is published for it"},
	}
}

// choosing opens the candidates screen.
func choosing(rows *[]engines.Candidate, profile theme.Profile, ascii bool, w, h int) *choice {
	list := func() ([]engines.Candidate, []string) {
		return *rows, []string{"12 processes could not be read: not permitted"}
	}
	c := newChoice(list, Config{Profile: profile, ASCII: ascii})
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return c
}

// pressed presses keys and reports whether the screen closes.
func (c *choice) pressed(keys ...string) (closes bool) {
	for _, key := range keys {
		closes = c.key(key) != nil
	}
	return closes
}

func TestGoldenChoice(t *testing.T) {
	rows := someCandidates()
	frame := func(profile theme.Profile, w, h int) string {
		c := choosing(&rows, profile, profile == theme.NoColour, w, h)
		c.pressed("down", "down", "down")
		return c.View().Content
	}
	viewtest.Golden(t, "choice_80x24.txt", viewtest.StripStyles(frame(theme.TrueColour, 80, 24)))
	viewtest.Golden(t, "choice_120x36.ansi", frame(theme.TrueColour, 120, 36))
	viewtest.Golden(t, "choice_ascii_160x45.txt", viewtest.StripStyles(frame(theme.NoColour, 160, 45)))
}

func TestChoosing(t *testing.T) {
	all := []string{"http://127.0.0.1:8080", "http://127.0.0.1:11434", "http://127.0.0.1:30000"}
	for _, tt := range []struct {
		keys   []string
		want   Pick
		closes bool
	}{
		{[]string{"enter"}, Pick{Addresses: all[:1]}, true},
		{[]string{"down", "j", "up", "enter"}, Pick{Addresses: all[1:2]}, true},
		{[]string{"a"}, Pick{Addresses: all}, true},
		{[]string{"down", "down", "down", "enter"}, Pick{}, false}, // needs a key
		{[]string{"esc"}, Pick{BuiltIn: true}, true},
		{[]string{"end", "enter"}, Pick{BuiltIn: true}, true},
		{[]string{"end", "home", "t", "x", "enter"}, Pick{Addresses: all[:1]}, true},
		{[]string{"q"}, Pick{}, true},
	} {
		rows := someCandidates()
		c := choosing(&rows, theme.TrueColour, false, 120, 36)
		if closes := c.pressed(tt.keys...); closes != tt.closes || c.pick.BuiltIn != tt.want.BuiltIn || !slices.Equal(c.pick.Addresses, tt.want.Addresses) {
			t.Errorf("%q picks %+v and closes: %t", tt.keys, c.pick, closes)
		}
		if !tt.closes && !strings.Contains(c.View().Content, "LLMTOP_API_KEY") {
			t.Errorf("%q: the screen does not show the reason", tt.keys)
		}
	}
	rows := someCandidates()
	rows[1].Blocked, rows[1].Silent = "does not answer in time", true
	if c := choosing(&rows, theme.TrueColour, false, 120, 36); !c.pressed("a") || !slices.Equal(c.pick.Addresses, all) {
		t.Errorf("with one that does not answer yet, %v are picked", c.pick.Addresses)
	}
	rows = rows[1:2]
	if c := choosing(&rows, theme.TrueColour, false, 120, 36); c.pressed("a") {
		t.Error("the only candidate is picked, and it does not answer")
	}
	locked := someCandidates()[3:]
	c := choosing(&locked, theme.TrueColour, false, 120, 36)
	if c.pressed("a") || c.toast == "" {
		t.Error("candidates that cannot be watched are picked")
	}
}

// TestProbesAreAskedFor: nothing attaches probes to a process without a yes.
func TestProbesAreAskedFor(t *testing.T) {
	const probes, http, other = "pid:4711", "http://127.0.0.1:8080", "http://127.0.0.1:11434"
	for _, tt := range []struct {
		keys []string
		want []string // nil: the screen stays
	}{
		{[]string{"enter"}, nil},
		{[]string{"enter", "enter"}, nil},
		{[]string{"enter", "n"}, nil},
		{[]string{"enter", "y"}, []string{probes}},
		{[]string{"enter", "h"}, []string{http}},
		{[]string{"enter", "down", "y"}, nil},
		{[]string{"down", "enter"}, []string{other}},
		{[]string{"a"}, nil},
		{[]string{"a", "y"}, []string{probes, other}},
		{[]string{"a", "h"}, nil},
		{[]string{"y"}, nil},
	} {
		rows := someCandidates()[:2]
		rows[0].Address, rows[0].Ask, rows[0].Instead = probes, "attach probes to process 4711 (llama-server)", http
		c := choosing(&rows, theme.TrueColour, false, 80, 24)
		if closes := c.pressed(tt.keys...); closes != (tt.want != nil) || !slices.Equal(c.pick.Addresses, tt.want) {
			t.Errorf("%q picks %v and closes: %t", tt.keys, c.pick.Addresses, closes)
		}
		if asks := strings.Contains(c.View().Content, "process 4711 (llama-server)?  y yes  n no"); asks != (len(tt.keys) == 1 && tt.want == nil && tt.keys[0] != "y") {
			t.Errorf("%q: the screen asks: %t", tt.keys, asks)
		}
	}
	rows := someCandidates()[:2]
	rows[0].Ask = "attach probes to process 4711"
	c := choosing(&rows, theme.TrueColour, false, 80, 24)
	c.pressed("enter")
	rows[0].Ask = "attach probes to process 4712" // it was restarted
	if c.Update(tickMsg{}); c.pressed("y") {
		t.Error("a yes for one process attaches probes to another")
	}
}

// Candidates come and go; the user's selection follows its candidate.
func TestCandidatesComeAndGo(t *testing.T) {
	rows := someCandidates()[1:]
	c := choosing(&rows, theme.TrueColour, false, 120, 36)
	rows = someCandidates()
	if c.Update(tickMsg{}); c.shown.Selected != 0 {
		t.Errorf("row %d is selected, want the first", c.shown.Selected)
	}
	c.pressed("down")
	rows = append([]engines.Candidate{{Name: "LM Studio", Address: "http://127.0.0.1:1234"}}, rows...)
	c.Update(tickMsg{})
	c.pressed("enter")
	if !slices.Equal(c.pick.Addresses, []string{"http://127.0.0.1:11434"}) {
		t.Errorf("picks %+v", c.pick)
	}
	c.pressed("end")
	rows = rows[:2]
	c.Update(tickMsg{})
	if c.pressed("enter"); !c.pick.BuiltIn {
		t.Errorf("picks %+v", c.pick)
	}
	rows = nil
	c.Update(tickMsg{})
	if !c.pressed("enter") {
		t.Error("without candidates the built-in model cannot be picked")
	}
}

// A click selects, a second one picks.
func TestMouseSelectsCandidates(t *testing.T) {
	rows := someCandidates()
	c := choosing(&rows, theme.TrueColour, false, 120, 36)
	c.View()
	click := tea.MouseClickMsg{X: 10, Y: c.shown.Body.Y + 2, Button: tea.MouseLeft}
	if cmd := c.Update(click); cmd != nil || c.shown.Selected != 2 {
		t.Errorf("a click selects %d", c.shown.Selected)
	}
	if cmd := c.Update(click); cmd == nil || !slices.Equal(c.pick.Addresses, []string{"http://127.0.0.1:30000"}) {
		t.Errorf("a second click picks %+v", c.pick)
	}
	c.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	c.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if c.shown.Selected != 2 {
		t.Errorf("the wheel selects %d", c.shown.Selected)
	}
}

// TestChoiceFitsEveryScreen draws every size with many candidates and with none.
func TestChoiceFitsEveryScreen(t *testing.T) {
	for _, n := range []int{0, 1, 5, 60} {
		rows := slices.Repeat(someCandidates(), 12)[:n]
		c := choosing(&rows, theme.TrueColour, false, 80, 24)
		for w := 1; w < 200; w += 7 {
			for _, h := range []int{1, 2, 3, 4, 5, 8, 12, 24, 50} {
				c.Update(tea.WindowSizeMsg{Width: w, Height: h})
				c.pressed("down", "pgdown")
				checkFrame(t, c.View().Content, w, h)
			}
		}
	}
}
