package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
)

func TestKeysDoWhatTheHelpSays(t *testing.T) {
	for _, b := range bindings {
		test, ok := keyCases[b.act]
		if !ok {
			test, ok = requestKeyCases[b.act]
		}
		if !ok {
			test, ok = expertKeyCases[b.act]
		}
		if !ok {
			test, ok = latencyKeyCases[b.act]
		}
		if !ok {
			t.Errorf("key %s has no test", b.show)
			continue
		}
		t.Run(b.show, func(t *testing.T) {
			a, k := withCalls(t)
			a.View()
			test(t, a, k)
		})
	}
}

// The help lists every key and every number.
func TestHelpListsEveryKey(t *testing.T) {
	for v := range numViews {
		var words strings.Builder
		for _, r := range helpRows(100, bindings, v) {
			words.WriteString(r.term + " " + r.words + "\n")
		}
		for _, b := range bindings {
			if b.help == "" || !strings.Contains(words.String(), b.help[:min(len(b.help), 20)]) {
				t.Errorf("the help of view %d does not explain %s", v, b.names())
			}
		}
		for _, n := range glossary {
			if !strings.Contains(words.String(), n.name+" ") {
				t.Errorf("the help of view %d does not explain %s", v, n.name)
			}
		}
	}
}

// boundOnce fails if a key has two actions in one view; a binding of some views may override one of all views.
func boundOnce(t *testing.T, keys []binding) {
	t.Helper()
	for v := range numViews {
		own, all := map[string]bool{}, map[string]bool{}
		for _, b := range keys {
			seen := own
			if b.views == everywhere {
				seen = all
			}
			for _, k := range b.keys {
				if b.views.has(v) && seen[k] {
					t.Errorf("%s is bound twice in view %d", k, v)
				}
				seen[k] = seen[k] || b.views.has(v)
			}
		}
	}
}

func TestNoKeyIsBoundTwice(t *testing.T) {
	boundOnce(t, bindings)
	boundOnce(t, replayBindings())
}

func TestErrorsOfActionsAreShown(t *testing.T) {
	a, k := withCalls(t)
	k.err = errors.New("queue is full: \x1b[31m8 requests")
	a.press("c")
	holds(t, a, "queue is full: �8 requests")
}

// Keys of actions that the program does not offer are not shown and do nothing.
func TestUnavailableActionsHaveNoKeys(t *testing.T) {
	a, _ := withCalls(t)
	a.session.Actions = Actions{}
	a.press("p", "c", "+", "-")
	a.Update(tea.PasteMsg{Content: "text"})
	if a.editor.open {
		t.Error("an unavailable key opened the editor")
	}
	if strings.Contains(a.screen(), "cancel") || strings.Contains(a.screen(), "p prompt") {
		t.Error("the footer shows keys that do nothing")
	}
}

func TestPaceKeysStep(t *testing.T) {
	for _, c := range []struct{ now, faster, slower float64 }{
		{40, 80, 20}, {2, 5, 2}, {160, 0, 80}, {0, 0, 160}, {1, 2, 1}, {1e6, 0, 160}, {33, 40, 20},
	} {
		a, k := withCalls(t)
		s := *a.snap
		s.Engine.Pace = c.now
		a.snap = &s
		a.press("+", "-")
		if !slices.Equal(k.paces, []float64{c.faster, c.slower}) {
			t.Errorf("from %v the keys give %v, want %v and %v", c.now, k.paces, c.faster, c.slower)
		}
	}
}

func TestCancelWithoutRequest(t *testing.T) {
	a, k := withCalls(t)
	s := *a.snap
	s.Current = nil
	a.snap = &s
	a.press("c")
	holds(t, a, "no request is running")
	if len(k.cancels) != 0 {
		t.Error("the cancel action was called")
	}
}

// Every view in every state of a session handles every key and draws a whole frame after it.
func TestEveryKeyInEveryState(t *testing.T) {
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			everyKey(t, sc.make().drain(), 90, 28)
		})
	}
	for _, n := range crowds {
		t.Run(crowdName(n)+" requests", func(t *testing.T) {
			t.Parallel()
			everyKey(t, crowdSnapshots(n), 60, 18)
			everyKey(t, crowdSnapshots(n), 200, 60)
		})
	}
}

// everyKey presses every key in every view.
func everyKey(t *testing.T, s *store.Snapshot, w, h int) {
	for v := view(0); v < numViews; v += view(eventtest.Step(3)) {
		a := open(s, theme.Colours16, false, w, h)
		for _, b := range bindings {
			if b.act == actSuspend || b.act == actQuit {
				continue
			}
			for _, key := range b.keys {
				a.show(v)
				a.press(key)
				checkFrame(t, a.View().Content, w, h)
				if a.editor.open || a.requests.typing || a.palette.open {
					a.press("esc")
				}
			}
		}
	}
}
