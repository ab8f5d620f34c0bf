package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/experts"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// lookAt opens the router view over a snapshot and presses keys.
func lookAt(s *store.Snapshot, w, h int, keys ...string) *app {
	a := open(s, theme.TrueColour, false, w, h)
	a.press(viewKey(viewExperts))
	a.View()
	for _, k := range keys {
		a.press(k)
		a.View()
	}
	return a
}

// expertKeyCases test the keys of the router view.
var expertKeyCases = map[string]func(*testing.T, *app, *calls){
	"previous expert": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36, "/", "3", ":", "2", "enter", "left", "h")
		holds(t, a, "L3 e0 ")
		a.press("left")
		holds(t, a, "L3 e0 ")
		a.press("down", "j", "k")
		holds(t, a, "L4 e0 ")
		a.press("end")
		holds(t, a, "L7 e0 ")
		a.press("down", "home")
		holds(t, a, "L0 e0 ")
	},
	"expert": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36, "/", "3", ":", "1", "3", "enter", "right", "l")
		holds(t, a, "L3 e15 ")
		a.press("right")
		holds(t, a, "L3 e15 ")
	},
	"find":      testFind,
	"find next": testFindNext,
	"smaller budget": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36)
		holds(t, a, " 32 of 128 experts")
		holds(t, a, "4 of 16 slots per layer serve 35 %")
		a.press("<")
		holds(t, a, "3 of 16 slots per layer serve")
		for range 8 {
			a.press("<")
		}
		holds(t, a, " 0 of 128 experts, 0 B: 0 % of routing")
	},
	"budget": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36, ">")
		holds(t, a, " 36 of 128 experts, 2.44 MB: ") // (11.8 MB - 4.2 MB) / (1 - 2/16) / 128 each
		for range experts.BudgetParts {
			a.press(">")
		}
		holds(t, a, " 128 of 128 experts, 8.69 MB: 100 % of routing")
		holds(t, a, "fits the budget")
	},
	"by kind": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36, "v")
		holds(t, a, "by prompt kind, generated tokens, session")
		for _, kind := range []string{"arithmetic 60", "code 120", "novel 60", "scripture 100"} {
			holds(t, a, kind)
		}
		a.press("v")
		holds(t, a, "by group, generated tokens, session")
		holds(t, a, "(no name) 340")
		a.press("v")
		holds(t, a, "experts in memory: ")
		a.press("v")
		holds(t, a, "decode, last 1 min")
	},
	"tables": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 80, 24)
		holds(t, a, "Expert cache")
		holds(t, a, "Picked together")
		a.press("tab", "tab")
		holds(t, a, "By prompt kind")
		holds(t, a, "press m to set a mark")
		a.press("tab")
		holds(t, a, "Expert cache")
	},
	"window of the map": func(t *testing.T, _ *app, _ *calls) {
		a := lookAt(viewtest.Routed(viewtest.Small), 120, 36)
		for _, words := range []string{"decode, session", "decode, last request", "decode, last 10 s", "decode, last 1 min"} {
			a.press("w")
			holds(t, a, words)
			if words == "decode, last request" {
				holds(t, a, "#6: 39 tokens")
			}
		}
	},
}

func testFind(t *testing.T, _ *app, _ *calls) {
	a := lookAt(viewtest.Routed(viewtest.Small), 120, 36, "/")
	holds(t, a, "L5, e12, 5:12, hot, idle, L5 hot")
	a.Update(tea.PasteMsg{Content: "L5 E12"})
	holds(t, a, "L5 e12 ")
	a.press("enter", "/", "x")
	holds(t, a, `find "x": want L5, e12`)
	a.press("enter") // enter does not apply an invalid search
	a.press("esc")
	holds(t, a, "L5 e12 ")
	for typed, want := range map[string]string{
		"l9": "find layer 9: the model has L0 to L7", "e16": "find expert 16: a layer has e0 to e15", "5:": `find "5:"`,
		"99999999": "find", "7:0 idle": "find idle experts: all were picked", "2:3": "L2 e3 ", "l2:e4": "L2 e4 ",
	} {
		a.press("/")
		a.Update(tea.PasteMsg{Content: typed})
		holds(t, a, want)
		a.press("esc")
	}
	a.press("/")
	a.Update(tea.PasteMsg{Content: "L5"})
	h := a.experts.Hits(a.snap, &a.panes)
	if v := a.experts; v.Layer != 5 || v.Expert != h.Layers[5].Hot[0] {
		t.Errorf("the hottest expert of layer 5 is %d, found %d of layer %d", h.Layers[5].Hot[0], v.Expert, v.Layer)
	}
	empty := open(store.Empty(), theme.TrueColour, false, 120, 36)
	empty.press("5", "/", "e", "1")
	holds(t, empty, "find expert: no router picks yet")
}

func testFindNext(t *testing.T, a *app, _ *calls) {
	a.press("5", "n")
	holds(t, a, "no search yet")
	a.press("/", "h", "o", "t", "enter")
	h, seen := a.experts.Hits(a.snap, &a.panes), map[[2]int]bool{}
	last := 2.0
	for range 128 {
		v := a.experts
		share := float64(h.Counts[v.Layer*16+v.Expert]) / float64(h.Layers[v.Layer].Total)
		if share > last {
			t.Fatalf("share %v follows the smaller share %v", share, last)
		}
		last, seen[[2]int{v.Layer, v.Expert}] = share, true
		a.press("n")
	}
	if len(seen) != 128 {
		t.Errorf("n visits %d of 128 experts", len(seen))
	}
}

// The mouse selects the expert of a cell, and the hottest one where a cell shows several.
func TestMouseSelectsExperts(t *testing.T) {
	for _, shape := range viewtest.Shapes {
		s := viewtest.Routed(shape)
		a := lookAt(s, 120, 36)
		h := a.experts.Hits(a.snap, &a.panes)
		at := a.experts.Maps[0].At
		seen := map[[2]int]bool{}
		for y := at.Y; y < at.Y+at.H; y++ {
			for x := at.X; x < at.X+at.W; x++ {
				a.Update(tea.MouseMotionMsg{X: x, Y: y})
				v := a.experts
				seen[[2]int{v.Layer, v.Expert}] = true
			}
		}
		most := 0.0
		for c := range seen {
			most = max(most, float64(h.Counts[c[0]*shape.Experts+c[1]])/float64(h.Layers[c[0]].Total))
		}
		if shape.Experts == 16 && len(seen) != 128 || most != h.Max {
			t.Errorf("%v: the mouse selects %d experts, the hottest share is %v, want %v", shape, len(seen), most, h.Max)
		}
		a.Update(tea.MouseClickMsg{X: at.X, Y: at.Y, Button: tea.MouseLeft})
		if first := a.experts; shape.Experts == 16 && (first.Layer != 0 || first.Expert != 0) {
			t.Errorf("a click on the first cell selects L%d e%d", first.Layer, first.Expert)
		}
		a.View()
		if cmd := a.Update(tea.MouseMotionMsg{X: 0, Y: 0}); cmd != nil || a.dirty {
			t.Error("the mouse outside the map changes the frame")
		}
	}
}

// The selected cell shows the numbers of its counts.
func TestCellShowsItsCounts(t *testing.T) {
	s := viewtest.NewScene()
	s.Load(event.StageNone)
	s.Model("moe", 1, 4, 1)
	s.Request(1, "code", viewtest.PromptText, viewtest.AnswerText, 1, 9, false)
	s.DecodePicks(100, 30, 10, 60, 0)
	a := lookAt(s.Snapshot(), 160, 45, "/", "0", ":", "1", "enter", ">", ">")
	holds(t, a, "L0 e1  10 % of the layer's picks   10 picks   0.400× the uniform share   rank 3 of 4   over budget")
	// Entropy of .3 .1 .6 is 0.8979 nats, over ln 4; the mean is 25 picks, the deviation sqrt((25 + 225 + 1225 + 625) / 4).
	holds(t, a, "L0  hottest e2 at 60 %   max/mean 2.40   entropy 0.648   idle 1   CV 0.917   fit 1 of 4")
	holds(t, a, " 1 of 4 experts, 2.53 MB: 60 % of routing covered by the hottest; uniform baseline 25 %")
	a.press("/", "i", "d", "l", "e", "enter")
	holds(t, a, "L0 e3  0 % of the layer's picks   0 picks   0× the uniform share   rank 4 of 4   over budget")
	a.press("e")
	holds(t, a, "no prompt token in the last 1 min")
}

// Drift since a mark covers the picks since then, or a window that no longer reaches back to the mark.
func TestDriftSinceAMark(t *testing.T) {
	s := viewtest.NewScene()
	s.Load(event.StageNone)
	s.Model("moe", 2, 2, 1)
	report := func(tokens uint64, picks ...uint64) {
		s.Now += 100 * ms
		s.DecodePicks(tokens, picks...)
	}
	report(100, 50, 50, 90, 10)
	snap := s.Snapshot()
	a := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return snap }}), Profile: theme.TrueColour})
	a.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	a.press("5", "m", "w")
	s.Now += 1000 * ms
	report(200, 75, 125, 180, 20)
	snap = s.Snapshot()
	a.Update(tickMsg{})
	holds(t, a, "decode, since m1 vs session at m1")
	holds(t, a, "mean over layers 12 %") // of 25 % and 0 %
	holds(t, a, "L0     25 % chance")
	holds(t, a, "e0 -25 %")
	holds(t, a, "L1      0 % chance")
	a.press("w", "w", "w") // the last minute also holds picks from before the mark
	holds(t, a, "decode, since m1 vs last 1 min at m1")
	holds(t, a, "L0     25 % chance")
	s.Now += 100_000 * ms
	report(300, 125, 175, 280, 20)
	snap = s.Snapshot()
	a.Update(tickMsg{})
	holds(t, a, "decode, last 1 min vs same at m1")
	holds(t, a, "L0      0 % chance")
	holds(t, a, "L1     10 % chance")
}
