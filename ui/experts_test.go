package ui

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/panes"
)

// pickFor is what the router picks for a token of a kind of text: experts of each layer by its bias, which each kind shifts by some places.
func (s *scene) pickFor(kind string) (picks []uint16) {
	for l := range s.layers {
		sum := 0.0
		for _, b := range s.bias[l] {
			sum += b
		}
		seen := map[uint16]bool{}
		for len(seen) < s.used {
			at, e := s.rng.Float64()*sum, 0
			for ; e < s.experts-1 && at > s.bias[l][e]; e++ {
				at -= s.bias[l][e]
			}
			if p := uint16((e + len(kind)) % s.experts); !seen[p] {
				seen[p] = true
				picks = append(picks, p)
			}
		}
	}
	return picks
}

// routed is a session of a model of the given shape whose tokens tell of their picks: four kinds of text and two groups, the last request
// in flight.
func routed(layers, experts, used int) *scene {
	s := newScene()
	s.load(event.StageNone)
	s.model("moe", layers, experts, used)
	s.tells = true
	for i, kind := range []string{"code", "novel", "scripture", "code", "arithmetic"} {
		s.request(event.RequestID(i+1), kind, promptText[:20+i*5], answerText, 60, 60, i == 0)
		s.now += 2500 * ms
		s.host()
		s.drain()
	}
	s.request(6, "scripture", promptText, answerText, 40, 420, false)
	s.now += 1003 * ms
	s.emit(event.Event{Kind: event.KindLog, Text: "on"})
	return s
}

// routedSnapshot is the end of routed, each made once.
var routedSnapshot = func() func(layers, experts, used int) *store.Snapshot {
	var mu sync.Mutex
	made := map[[3]int]*store.Snapshot{}
	return func(layers, experts, used int) *store.Snapshot {
		mu.Lock()
		defer mu.Unlock()
		key := [3]int{layers, experts, used}
		if made[key] == nil {
			made[key] = routed(layers, experts, used).drain()
		}
		return made[key]
	}
}()

// shapes are the models that the view is looked at with.
var shapes = [][3]int{{8, 16, 2}, {94, 256, 8}}

// lookAt opens the view over a snapshot.
func lookAt(s *store.Snapshot, w, h int, keys ...string) *app {
	a := open(s, theme.TrueColour, false, w, h)
	a.press(viewKeys[viewExperts])
	a.View()
	for _, k := range keys {
		a.press(k)
		a.View()
	}
	return a
}

// The view in every size, dark and light, of a small and of a large router; and as the poorest terminal shows it.
func TestGoldenExperts(t *testing.T) {
	for _, shape := range shapes {
		s := routedSnapshot(shape[0], shape[1], shape[2])
		name := fmt.Sprintf("experts_%dx%d", shape[0], shape[1])
		for _, size := range sizes {
			a := lookAt(s, size[0], size[1])
			golden(t, fmt.Sprintf("%s_%dx%d.ansi", name, size[0], size[1]), a.View().Content)
			for i, p := range theme.Palettes() {
				if p.Name == "light" {
					a.theme = i
				}
			}
			a.dress()
			a.dirty = true
			golden(t, fmt.Sprintf("%s_%dx%d_light.ansi", name, size[0], size[1]), a.View().Content)
			a.press("v")
			golden(t, fmt.Sprintf("%s_%dx%d_kinds.txt", name, size[0], size[1]), strings.TrimSuffix(a.screen(), "\n"))
		}
		a := open(s, theme.NoColour, true, 120, 36)
		a.press(viewKeys[viewExperts])
		golden(t, name+"_ascii.txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// expertKeyCases are the cases of the keys of the router's view.
var expertKeyCases = map[action]func(*testing.T, *app, *asked){
	actExpertLeft: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36, "/", "3", ":", "2", "enter", "left", "h")
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
	actExpertRight: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36, "/", "3", ":", "1", "3", "enter", "right", "l")
		holds(t, a, "L3 e15 ")
		a.press("right")
		holds(t, a, "L3 e15 ")
	},
	actFind:     finds,
	actFindNext: findsNext,
	actBudgetLess: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36)
		holds(t, a, " 32 of 128 experts")
		for range 9 {
			a.press("<")
		}
		holds(t, a, " 0 of 128 experts, 0 B: 0 % of routing")
	},
	actBudgetMore: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36, ">")
		holds(t, a, " 36 of 128 experts, 2.44 MB: ") // (11.8 MB - 4.2 MB) / (1 - 2/16) / 128 each
		for range panes.BudgetParts {
			a.press(">")
		}
		holds(t, a, " 128 of 128 experts, 8.69 MB: 100 % of routing")
		holds(t, a, "kept within the budget")
	},
	actSplit: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36, "v")
		holds(t, a, "by kind of prompt, generated tokens, session")
		for _, kind := range []string{"arithmetic 60", "code 120", "novel 60", "scripture 100"} {
			holds(t, a, kind)
		}
		a.press("v")
		holds(t, a, "by group, generated tokens, session")
		holds(t, a, "(no name) 340")
		a.press("v")
		holds(t, a, "decode, last 1 min")
	},
	actSection: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 80, 24)
		holds(t, a, "Picked together")
		a.press("tab", "tab")
		holds(t, a, "m marks this moment")
		a.press("tab")
		holds(t, a, "By kind of prompt")
	},
	actSpan: func(t *testing.T, _ *app, _ *asked) {
		a := lookAt(routedSnapshot(8, 16, 2), 120, 36)
		for _, words := range []string{"decode, session", "decode, last request", "decode, last 10 s", "decode, last 1 min"} {
			a.press("w")
			holds(t, a, words)
			if words == "decode, last request" {
				holds(t, a, "#6: 39 tokens")
			}
		}
	},
}

func finds(t *testing.T, _ *app, _ *asked) {
	a := lookAt(routedSnapshot(8, 16, 2), 120, 36, "/")
	holds(t, a, findSyntax)
	a.Update(tea.PasteMsg{Content: "L5 E12"})
	holds(t, a, "L5 e12 ")
	a.press("enter", "/", "x")
	holds(t, a, `find "x": want L5, e12`)
	a.press("enter") // it cannot be kept
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
	h := a.experts.shown.Hits(a.snap, &a.panes)
	if v := a.experts.shown; v.Layer != 5 || v.Expert != h.Layers[5].Hot[0] {
		t.Errorf("the hottest of layer 5 is %d, found was %d of %d", h.Layers[5].Hot[0], v.Expert, v.Layer)
	}
	empty := open(&store.Snapshot{}, theme.TrueColour, false, 120, 36)
	empty.press("5", "/", "e", "1")
	holds(t, empty, "find expert: there are no picks")
}

func findsNext(t *testing.T, a *app, _ *asked) {
	a.press("5", "n")
	holds(t, a, "nothing was looked for")
	a.press("/", "h", "o", "t", "enter")
	h, seen := a.experts.shown.Hits(a.snap, &a.panes), map[cell]bool{}
	last := 2.0
	for range 128 {
		v := a.experts.shown
		share := float64(h.Counts[v.Layer*16+v.Expert]) / float64(h.Layers[v.Layer].Total)
		if share > last {
			t.Fatalf("%v comes after %v", share, last)
		}
		last, seen[cell{v.Layer, v.Expert}] = share, true
		a.press("n")
	}
	if len(seen) != 128 {
		t.Errorf("n goes through %d of 128 experts", len(seen))
	}
}

// The mouse reads a cell, and of a cell that stands for several experts the hottest.
func TestMouseReadsExperts(t *testing.T) {
	for _, shape := range shapes {
		s := routedSnapshot(shape[0], shape[1], shape[2])
		a := lookAt(s, 120, 36)
		h := a.experts.shown.Hits(a.snap, &a.panes)
		at := a.experts.shown.Maps[0].At
		seen := map[cell]bool{}
		for y := at.Y; y < at.Y+at.H; y++ {
			for x := at.X; x < at.X+at.W; x++ {
				a.Update(tea.MouseMotionMsg{X: x, Y: y})
				v := &a.experts.shown
				seen[cell{v.Layer, v.Expert}] = true
			}
		}
		most := 0.0
		for c := range seen {
			most = max(most, float64(h.Counts[c.layer*shape[1]+c.expert])/float64(h.Layers[c.layer].Total))
		}
		if shape[1] == 16 && len(seen) != 128 || most != h.Max {
			t.Errorf("%v: the mouse reads %d experts, the hottest %v of %v", shape, len(seen), most, h.Max)
		}
		a.Update(tea.MouseClickMsg{X: at.X, Y: at.Y, Button: tea.MouseLeft})
		if first := a.experts.shown; shape[1] == 16 && (first.Layer != 0 || first.Expert != 0) {
			t.Errorf("a click on the first cell looks at L%d e%d", first.Layer, first.Expert)
		}
		a.View()
		if _, cmd := a.Update(tea.MouseMotionMsg{X: 0, Y: 0}); cmd != nil || a.dirty {
			t.Error("the mouse beside the map changes the frame")
		}
	}
}

// The cell that is looked at has the numbers of its counts.
func TestCellTellsItsCounts(t *testing.T) {
	s := newScene()
	s.load(event.StageNone)
	s.model("moe", 1, 4, 1)
	s.request(1, "code", promptText, answerText, 1, 9, false)
	copy(s.promptPicks, []uint64{0, 0, 0, 0})
	copy(s.decPicks, []uint64{30, 10, 60, 0})
	s.promptTok, s.decTok = 0, 100
	s.reportExperts()
	a := lookAt(s.drain(), 160, 45, "/", "0", ":", "1", "enter", ">", ">")
	holds(t, a, "L0 e1  10 % of the layer's picks   10 picks   0.40× its even share   rank 3 of 4   not kept within the budget")
	// Entropy of .3 .1 .6 is 0.8979 nats, over ln 4; the mean is 25 picks, the deviation sqrt((25 + 225 + 1225 + 625) / 4).
	holds(t, a, "L0  hottest e2 at 60 %   max/mean 2.40   entropy 0.648   idle 1   CV 0.92   kept 1 of 4")
	holds(t, a, " 1 of 4 experts, 2.53 MB: 60 % of routing covered by the most picked; if all were picked alike 25 %")
	a.press("/", "i", "d", "l", "e", "enter")
	holds(t, a, "L0 e3  0 % of the layer's picks   0 picks   0× its even share   rank 4 of 4   not kept")
	a.press("e")
	holds(t, a, "no prompt token in the last 1 min")
}

// Drift is told against the mark: of what came since, and of a window that no longer reaches back to it.
func TestDriftSinceAMark(t *testing.T) {
	s := newScene()
	s.load(event.StageNone)
	s.model("moe", 2, 2, 1)
	report := func(tokens uint64, picks ...uint64) {
		copy(s.decPicks, picks)
		s.decTok = tokens
		s.now += 100 * ms
		s.reportExperts()
	}
	report(100, 50, 50, 90, 10)
	snap := s.drain()
	a := newApp(Config{Snapshots: func() *store.Snapshot { return snap }, Profile: theme.TrueColour})
	a.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	a.press("5", "m", "w")
	s.now += 1000 * ms
	report(200, 75, 125, 180, 20)
	snap = s.drain()
	a.Update(tickMsg{})
	holds(t, a, "decode, since m1 against session then")
	holds(t, a, "mean of the layers 12 %") // of 25 % and 0 %
	holds(t, a, "L0     25 % chance")
	holds(t, a, "e0 -25 %")
	holds(t, a, "L1      0 % chance")
	a.press("w", "w", "w") // the last minute holds what was picked before, too
	holds(t, a, "decode, since m1 against last 1 min then")
	holds(t, a, "L0     25 % chance")
	s.now += 100_000 * ms
	report(300, 125, 175, 280, 20)
	snap = s.drain()
	a.Update(tickMsg{})
	holds(t, a, "decode, last 1 min against that of m1")
	holds(t, a, "L0      0 % chance")
	holds(t, a, "L1     10 % chance")
}
