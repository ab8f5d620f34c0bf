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
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// markedAt makes a model whose session ran two more requests after a mark.
func markedAt(w, h int) (*app, *viewtest.Scene) {
	s := viewtest.Live()
	var last *store.Snapshot
	a := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { last = s.Snapshot(); return last }}), Profile: theme.TrueColour})
	a.saveScreen = discardScreen
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	a.press("m")
	for id := event.RequestID(9); id <= 10; id++ {
		s.Request(id, "code", viewtest.PromptText, viewtest.AnswerText, 300, 300, false)
		s.Now += 900 * ms
		s.Host()
	}
	a.toastIn = 0
	a.toast = ""
	a.Update(tickMsg{})
	return a, s
}

func TestGoldenMark(t *testing.T) {
	a, _ := markedAt(120, 36)
	a.press("o", "M")
	goldenText(t, "since", a)
}

// The box shows the numbers of the store, and a moment before the mark cannot be compared.
func TestSinceTheMark(t *testing.T) {
	a, s := markedAt(120, 36)
	holds(t, a, "since m1 ")
	a.press("M")
	d := a.snap.ChangesSince(a.panes.Mark().Snapshot)
	if d.Ended.Finished == 0 || d.Generated < 300 || d.MostDrifted < 0 {
		t.Fatalf("since the mark: %+v", d)
	}
	holds(t, a, "requests finished")
	if d.Drifted {
		t.Fatalf("an unchanged router drifted: %+v", d)
	}
	holds(t, a, "by chance")
	now := a.snap
	x := now.Experts
	prompt, decode := x.Hits(metric.Session, metric.Prompt), x.Hits(metric.Session, metric.Decode)
	picks := slices.Clone(decode.Counts)
	picks[2*x.Experts+9] += 5000
	s.Emit(event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: x.Layers, Experts: x.Experts, Used: x.Used,
		Prompt: prompt.Counts, PromptTokens: prompt.Tokens, Decode: picks, DecodeTokens: decode.Tokens + 2500,
	}})
	a.snap, a.dirty = s.Snapshot(), true
	holds(t, a, "layer 2")
	a.snap = a.panes.Mark().Snapshot
	a.press("m")
	a.snap = now
	a.press("m")
	if n := len(a.panes.Marks); n != 3 || a.panes.Mark().Name != "m3" {
		t.Errorf("%d marks, the newest is %s", n, a.panes.Mark().Name)
	}
	a.snap = a.panes.Marks[0].Snapshot
	a.dirty = true
	holds(t, a, "this moment is before m3")
	a.press("u")
	if strings.Contains(a.screen(), "m3") {
		t.Error("a cleared mark is still shown")
	}
}

// Marks are bounded, and each engine has its own.
func TestMarksOfEngines(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 120, 36)
	a.showSession(0)
	a.show(viewOverview)
	for range maxMarks + 3 {
		a.press("m")
	}
	if len(a.panes.Marks) != maxMarks || a.panes.Marks[0].Name != "m4" {
		t.Errorf("%d marks, the first is %s", len(a.panes.Marks), a.panes.Marks[0].Name)
	}
	a.showSession(1)
	if len(a.panes.Marks) != 0 {
		t.Error("another engine has the marks of the first")
	}
	a.press("m")
	a.showSession(0)
	if a.panes.Mark().Name != fmt.Sprintf("m%d", maxMarks+3) {
		t.Errorf("the first engine's newest mark is %s", a.panes.Mark().Name)
	}
}

// Cases of the keys of marks for the key table.
func init() {
	keyCases["mark"] = func(t *testing.T, a *app, _ *calls) {
		a.press("m")
		holds(t, a, "mark m1 set")
		holds(t, a, "since m1 0 s")
	}
	keyCases["changes since mark"] = func(t *testing.T, a *app, _ *calls) {
		a.press("M")
		holds(t, a, "no mark yet")
		a.press("m", "M")
		holds(t, a, "╭─ Since m1 ")
		a.press("M")
		if strings.Contains(a.screen(), "Since m1") {
			t.Error("pressing M again does not close the list")
		}
	}
	keyCases["clear marks"] = func(t *testing.T, a *app, _ *calls) {
		a.press("m", "M", "u")
		if strings.Contains(a.screen(), "ince m1") {
			t.Error("the mark is still there")
		}
	}
}
