package ui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// The palette of a view offers every key of that view and does the same as the key.
func TestPaletteDoesWhatTheKeysDo(t *testing.T) {
	for _, v := range allViews {
		by := func() *app {
			a, _ := withCalls(t)
			a.show(v)
			a.View()
			return a
		}
		a := by()
		all := a.commands()
		for _, b := range a.live {
			for _, key := range b.Keys {
				if b.is(a.find(key)) && key != ":" && b.why() == "" && b.name() != "" && !slices.ContainsFunc(all, func(c command) bool { return c.help == b.Help }) {
					t.Errorf("the palette of view %d does not have %s", v, b.names())
				}
			}
		}
		for i, c := range all {
			pressed, chosen := by(), by()
			want := pressed.press(strings.Fields(c.keys)[0])
			chosen.press(":")
			for range i {
				chosen.press("down")
			}
			got := chosen.press("enter")
			if chosen.palette.open != pressed.palette.open || (got == nil) != (want == nil) || chosen.View().Content != pressed.View().Content {
				t.Errorf("in view %d %q of the palette does not do what %s does", v, c.name, c.keys)
			}
		}
	}
}

func TestPaletteFinds(t *testing.T) {
	for _, c := range []struct{ typed, first string }{
		{"theme", "theme"},
		{"th", "theme"},
		{"snpsht", "snapshot"},
		{"latency", "view latency"},
		{"w", "window"},
		{"S", "report"},
		{"s", "snapshot"},
		{"picture", "snapshot"},
		{"router decode", "phase"},
		{"QUIT", "quit"},
		{"pause", "pause"},
		{"", "prompt"},
		{"lst engins", "engines"},
	} {
		a, _ := withCalls(t)
		a.press(":")
		a.Update(tea.PasteMsg{Content: c.typed})
		if found := a.palette.found; len(found) == 0 || found[0].name != c.first {
			t.Errorf("%q finds %+v, want %q first", c.typed, found, c.first)
		}
	}
	a, _ := withCalls(t)
	a.press(":")
	a.Update(tea.PasteMsg{Content: "zzqx"})
	holds(t, a, "no matching command")
	if a.press("enter"); !a.palette.open {
		t.Error("enter closes the palette without a match")
	}
}

// However much is pasted or typed, a search keeps a bounded text, which is matched once for each change: keys that change
// nothing, such as those that close it, are not held up.
func TestSearchesAreBounded(t *testing.T) {
	a, _ := withCalls(t)
	matched, commands := 0, a.palette.commands
	a.palette.commands = func() []command { matched++; return commands() }
	a.press(":")
	for _, step := range []struct {
		do   func()
		want int
	}{
		{func() { a.Update(tea.PasteMsg{Content: "q"}) }, 1},
		{func() { a.Update(tea.PasteMsg{Content: strings.Repeat("x", 100_000)}) }, 1},
		{func() { typeText(a, strings.Repeat("y", 5_000)); a.View() }, 0},
		{func() { a.press("backspace", "y", "left", "right", "up", "down") }, 2},
		{func() { a.press("esc") }, 0},
	} {
		matched = 0
		if step.do(); matched != step.want {
			t.Errorf("matched %d times, want %d", matched, step.want)
		}
	}
	if a.palette.open || len(a.palette.line.Text()) > 1000 {
		t.Errorf("open: %v, %d characters", a.palette.open, len(a.palette.line.Text()))
	}
	a.press("2", "/")
	a.Update(tea.PasteMsg{Content: strings.Repeat("x", 100_000)})
	if n := len(a.requests.List.Filter.Text()); n == 0 || n > 1000 {
		t.Errorf("the filter has %d characters", n)
	}
	a.press("ctrl+c")
	if a.typist() != nil {
		t.Error("ctrl+c does not leave the filter")
	}
}

// Keys that come faster than anybody types share frames, and the next tick shows what they typed.
func TestFloodOfKeysSharesFrames(t *testing.T) {
	a, _ := withCalls(t)
	a.press("p")
	frames := map[string]bool{}
	for range 1000 {
		typeText(a, "x")
		frames[a.View().Content] = true
	}
	typeText(a, "end")
	if len(frames) > maxFrames+1 {
		t.Errorf("%d frames", len(frames))
	}
	a.onTick()
	holds(t, a, "xxxend")
}

// Every key, live or in a replay, has a name in the palette.
func TestEveryCommandHasAName(t *testing.T) {
	for _, b := range append(keysOf(Config{Replay: newPlayer()}).bindings, liveKeys()...) {
		if b.name() == "" && b.Keys[0] != viewKey(0) {
			t.Errorf("%s has no name", b.names())
		}
	}
}

// The palette omits actions that the program does not offer.
func TestPaletteOmitsUnavailableActions(t *testing.T) {
	a, _ := withCalls(t)
	a.changeSession(func(x *Session) { x.Actions = view.Actions{} })
	for _, c := range a.commands() {
		if slices.Contains([]string{"prompt", "cancel", "faster", "slower", "report", "engine"}, c.name) {
			t.Errorf("%q is offered", c.name)
		}
	}
}

func TestPaletteTakesTheMouse(t *testing.T) {
	a, _ := withCalls(t)
	a.press(":", "t", "h", "e", "m", "e")
	a.View()
	a.Update(tea.MouseClickMsg{X: a.palette.list.Body.X + 3, Y: a.palette.list.Body.Y, Button: tea.MouseLeft})
	if a.theme != 1 || a.palette.open {
		t.Error("a click does not run the command under it")
	}
	a.press(":")
	a.View()
	a.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if a.palette.list.Selected != 1 {
		t.Errorf("the wheel goes to row %d", a.palette.list.Selected)
	}
	a.Update(tea.MouseClickMsg{X: 1, Y: 1, Button: tea.MouseLeft})
	if a.palette.open || a.view != viewOverview {
		t.Error("a click elsewhere does more than close the palette")
	}
}

// The palette as it opens, and with a search.
func TestGoldenPalette(t *testing.T) {
	a := overlay(80, 24, true)
	a.press(":")
	goldenText(t, "palette_ascii", a)
	a = overlay(120, 36, false)
	a.press(":", "pgdown", "pgdown", "pgdown")
	checkFrame(t, a.View().Content, 120, 36)
	a.press("r", "e", "q")
	goldenText(t, "palette_found", a)
}

// The palette is a whole frame on screens of every size.
func TestSweepPalette(t *testing.T) {
	for w := 1; w <= 130; w += eventtest.Step(3) * (1 + w/20) {
		for h := 1; h <= 45; h += 1 + h/20 {
			a := open(viewtest.LiveSnapshot(), theme.Colours16, w%2 == 0, w, h)
			for _, keys := range [][]string{{":"}, {"down", "pgdown"}, {"日", "x"}} {
				a.press(keys...)
				checkFrame(t, a.View().Content, w, h)
			}
		}
	}
}
