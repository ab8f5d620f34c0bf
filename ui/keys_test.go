package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// calls records the actions that the screen called.
type calls struct {
	prompts []input.Suggestion
	cancels []event.RequestID
	paces   []float64
	reports int
	machine []string // calls of Watch and Inspect, with the model
	err     error    // result of the next action
	note    string   // note of the next prompt
}

func (k *calls) actions() view.Actions {
	return view.Actions{
		Prompt: func(text, label string) (string, error) {
			k.prompts = append(k.prompts, input.Suggestion{Label: label, Text: text})
			return k.note, k.err
		},
		Cancel: func(id event.RequestID) error {
			k.cancels = append(k.cancels, id)
			return k.err
		},
		SetPace: func(p float64) error {
			k.paces = append(k.paces, p)
			return k.err
		},
		Report: func(*store.Snapshot) ([]byte, error) {
			k.reports++
			return []byte("{}"), k.err
		},
		Watch:   func(model string, on bool) { k.machine = append(k.machine, fmt.Sprint("watch ", model, " ", on)) },
		Inspect: func(model string) { k.machine = append(k.machine, "inspect "+model) },
	}
}

// withCalls makes the model over the live session, with recorded actions.
func withCalls(t *testing.T) (*app, *calls) {
	t.Helper()
	a, k := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36), &calls{}
	a.changeSession(func(x *Session) { x.Actions = k.actions() })
	return a, k
}

// holds fails unless the screen shows the text.
func holds(t *testing.T, a *app, words string) {
	t.Helper()
	if !strings.Contains(a.screen(), words) {
		t.Errorf("the screen does not show %q:\n%s", words, a.screen())
	}
}

// zoomed returns the view that shows a pane in full screen.
func zoomed(id overview.ID) viewID {
	if id == overview.Experts {
		return viewExperts
	}
	return viewPane
}

// keyCases test the key table: each row needs a case.
var keyCases = map[string]func(*testing.T, *app, *calls){
	"prompt": func(t *testing.T, a *app, k *calls) {
		a.press("p")
		holds(t, a, "enter send")
		k.note = "with a \x1bnote"
		a.press("x", "enter")
		holds(t, a, "prompt sent; with a")
	},
	"pause": func(t *testing.T, a *app, _ *calls) {
		a.press("space")
		holds(t, a, "view paused")
		a.press("space")
		holds(t, a, "● live")
	},
	"focus": func(t *testing.T, a *app, _ *calls) {
		seen, there := []overview.ID{a.overview.Focus}, len(a.overview.Placements)
		for range there - 1 {
			a.press("tab")
			seen = append(seen, a.overview.Focus)
		}
		a.press("right")
		slices.Sort(seen)
		if len(slices.Compact(seen)) != there || a.overview.Focus != overview.TTFT {
			t.Errorf("tab visits %v and ends at %v", seen, a.overview.Focus)
		}
	},
	"previous pane": func(t *testing.T, a *app, _ *calls) {
		a.press("shift+tab")
		if a.overview.Focus != overview.Insights {
			t.Errorf("focus is on %v", a.overview.Focus)
		}
		a.press("left", "tab")
		if a.overview.Focus != overview.Insights {
			t.Errorf("left and tab lead to %v", a.overview.Focus)
		}
	},
	"zoom": func(t *testing.T, a *app, _ *calls) {
		for _, key := range []string{"enter", "z"} {
			var order []overview.ID
			for _, p := range a.overview.Placements {
				order = append(order, p.ID)
			}
			slices.Sort(order)
			for _, id := range order {
				a.press(key)
				holds(t, a, "╭─ "+id.String()+" ")
				if a.view != zoomed(id) || a.overview.Focus != id || strings.Count(a.screen(), "\n╭") != 1 {
					t.Errorf("%s shows %v", key, a.overview.Focus)
				}
				a.press("esc")
				a.View()
				a.press("tab")
			}
		}
	},
	"show": func(t *testing.T, _ *app, _ *calls) {
		all := sessionsOf(viewtest.SeveralEngines())
		a := openFleet(&all, false, 120, 36)
		a.press("down", "enter")
		if a.view != viewOverview || a.session.Name != all[1].Name {
			t.Errorf("enter shows %q", a.session.Name)
		}
	},
	"back": func(t *testing.T, a *app, _ *calls) {
		for _, key := range append(digits(), "z", "?") {
			for _, back := range []string{"esc", "backspace"} {
				a.press(key, back)
				if key == viewKey(viewRequest) {
					if a.view != viewRequests {
						t.Errorf("%s does not go from a request to the table", back)
					}
					a.press(back)
				}
				if a.view != viewOverview {
					t.Errorf("%s does not leave what %s opened", back, key)
				}
			}
		}
	},
	"": func(t *testing.T, a *app, _ *calls) {
		for v := range numTabs {
			a.press(viewKey(v))
			if a.view != v {
				t.Errorf("key %s shows view %d", viewKey(v), a.view)
			}
			if v != viewOverview {
				holds(t, a, "╭─ "+viewName(v)+" ")
			}
		}
	},
	"window": func(t *testing.T, a *app, _ *calls) {
		first := a.panes.Window
		for range metric.NumWindows {
			a.press("w")
			holds(t, a, "every token, "+a.panes.Window.String())
		}
		if a.panes.Window != first {
			t.Error("the windows do not wrap around")
		}
	},
	"phase": func(t *testing.T, a *app, _ *calls) {
		a.press("e")
		holds(t, a, "Experts ─ "+a.panes.Phase.String())
		if a.panes.Phase == metric.Decode {
			t.Error("the phase does not change")
		}
	},
	"log axis": func(t *testing.T, a *app, _ *calls) {
		a.press("4") // the latencies
		linear := a.View().Content
		a.press("Y")
		if a.View().Content == linear {
			t.Error("the axis does not change")
		}
		a.press("Y")
		if a.View().Content != linear {
			t.Error("the axis does not change back")
		}
	},
	"theme": func(t *testing.T, a *app, _ *calls) {
		before := a.View().Content
		for range theme.Palettes()[1:] {
			a.press("t")
			if a.View().Content == before {
				t.Errorf("%s looks like the first theme", a.skin.Palette.Name)
			}
			holds(t, a, "theme: "+a.skin.Palette.Name)
		}
		a.press("t")
		if a.skin.Palette != theme.Palettes()[0] {
			t.Error("the themes do not wrap around")
		}
	},
	"themes":  lists("T", "Theme"),
	"layouts": lists("L", "Layout"),
	"command": func(t *testing.T, a *app, _ *calls) {
		a.press(":")
		holds(t, a, "╭─ Commands ")
		a.press("esc")
		if a.palette.open {
			t.Error("esc does not close the palette")
		}
	},
	"snapshot": func(t *testing.T, a *app, _ *calls) {
		a.press("s")
		holds(t, a, "wrote llmtop-20260102-150405.svg and .txt")
	},
	"report": func(t *testing.T, a *app, k *calls) {
		var wrote string
		a.session.Actions.Timeline = func(s *store.Snapshot) ([]byte, error) {
			if s != a.snap {
				t.Error("the timeline is of another moment")
			}
			return []byte("[]"), nil
		}
		a.saveReport = func(json, timeline []byte) (string, error) {
			wrote = string(json) + string(timeline)
			return "report\x1b[31m.json", nil
		}
		a.Update(a.press("S")())
		holds(t, a, "wrote report�.json")
		if k.reports != 1 || wrote != "{}[]" {
			t.Errorf("%d reports were made, and %q was written", k.reports, wrote)
		}
	},
	"cancel": func(t *testing.T, a *app, k *calls) {
		a.press("c")
		holds(t, a, "request cancelled")
		if !slices.Equal(k.cancels, []event.RequestID{8}) {
			t.Errorf("cancelled %v", k.cancels)
		}
	},
	"faster": func(t *testing.T, a *app, k *calls) {
		a.press("+", "=")
		if !slices.Equal(k.paces, []float64{80, 80}) { // the engine still reports 40
			t.Errorf("paces %v", k.paces)
		}
		holds(t, a, "pace: 80")
	},
	"slower": func(t *testing.T, a *app, k *calls) {
		a.press("-")
		if !slices.Equal(k.paces, []float64{20}) {
			t.Errorf("paces %v", k.paces)
		}
	},
	"up":        scrolls("up", "k"),
	"down":      scrolls("down", "j"),
	"page up":   scrolls("pgup", "ctrl+u"),
	"page down": scrolls("pgdown", "ctrl+d"),
	"start":     scrolls("home", "g"),
	"end":       scrolls("end", "G"),
	"help": func(t *testing.T, a *app, _ *calls) {
		for _, key := range []string{"?", "h", "f1"} {
			a.press(key)
			holds(t, a, "Keys")
			a.press(key)
			if a.view != viewOverview {
				t.Errorf("%s does not close the help", key)
			}
		}
	},
	"suspend": func(t *testing.T, a *app, _ *calls) {
		if b := find(liveKeys(), "ctrl+z", viewOverview); b == nil || b.name() != "suspend" {
			t.Error("ctrl+z is not bound")
		}
	},
	"engines": func(t *testing.T, a *app, _ *calls) {
		for _, from := range []string{"1", "2", "3"} {
			a.press(from, "l")
			holds(t, a, "n/r not reported")
			before := a.viewBefore
			if a.press("l"); a.view != before || viewKey(a.view) != from {
				t.Errorf("l leads from view %s to %d", from, a.view)
			}
		}
	},
	"operations": func(t *testing.T, a *app, _ *calls) {
		for _, from := range []string{"1", "5", "?"} {
			a.press("esc", from, "o")
			holds(t, a, "no operation timed yet")
			if a.press("o"); a.view != viewOverview {
				t.Errorf("o leads back to view %d", a.view)
			}
		}
	},
	"previous engine": switches("[", 6),
	"engine":          switches("]", 1),
	"search": func(t *testing.T, a *app, _ *calls) {
		a.press("?", "/", "P", "S", "S")
		holds(t, a, "search: PSS")
		holds(t, a, "engine PSS")
		if text := a.screen(); strings.Contains(text, "type a prompt") || strings.Contains(text, "Health, below") {
			t.Errorf("rows without the words are shown:\n%s", text)
		}
		a.press("backspace", "x", "y", "enter")
		holds(t, a, "nothing in the help has these words")
		a.press("esc")
		holds(t, a, "type a prompt")
		if a.press("esc"); a.view != viewOverview {
			t.Errorf("esc leads to view %d", a.view)
		}
	},
	"quit": func(t *testing.T, a *app, _ *calls) {
		for _, key := range []string{"q", "ctrl+c"} {
			cmd := a.press(key)
			if cmd == nil {
				t.Fatalf("%s does nothing", key)
			}
			if _, ok := cmd().(tea.QuitMsg); !ok {
				t.Errorf("%s does not quit", key)
			}
		}
	},
}

// scrolls presses each key in the middle of the help, which is longer than the screen, and checks the scroll position.
func scrolls(keys ...string) func(*testing.T, *app, *calls) {
	by := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -view.Page, "ctrl+u": -view.Page, "pgdown": view.Page, "ctrl+d": view.Page, "home": -1 << 10, "g": -1 << 10, "end": 1 << 10, "G": 1 << 10}
	return func(t *testing.T, a *app, _ *calls) {
		a.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		for _, key := range keys {
			a.press("esc", "?", "end")
			a.View()
			last := a.help.first
			a.press("home", "pgdown", "down")
			a.View()
			from, page, step := a.help.first, a.help.page-1, by[key] // a page has one row of the last one
			if step == view.Page || step == -view.Page {
				step = step / view.Page * page
			}
			a.press(key)
			a.View()
			if want := max(0, min(from+step, last)); a.help.first != want || from != page+1 || last < 2*page+1 {
				t.Errorf("%s scrolls from %d to %d, want %d of %d", key, from, a.help.first, want, last)
			}
		}
	}
}

// lists presses a key and checks that it opens a list, which esc closes.
func lists(key, title string) func(*testing.T, *app, *calls) {
	return func(t *testing.T, a *app, _ *calls) {
		a.press(key)
		holds(t, a, "╭─ "+title+" ")
		if a.press("esc"); a.palette.open {
			t.Error("esc does not close the list")
		}
	}
}

// switches presses a key in the overview of the first of several engines and checks that the screen shows another.
func switches(key string, to int) func(*testing.T, *app, *calls) {
	return func(t *testing.T, single *app, _ *calls) {
		if b := single.find(key); b == nil || b.why() == "" {
			t.Errorf("%s is offered with one engine", key)
		}
		all := sessionsOf(viewtest.SeveralEngines())
		a := openFleet(&all, false, 120, 36)
		a.press("enter", key)
		if a.session.Name != all[to].Name || a.view != viewOverview {
			t.Errorf("%s leads to %q", key, a.session.Name)
		}
	}
}
