package ui

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func TestKeysDoWhatTheHelpSays(t *testing.T) {
	for _, b := range liveKeys() {
		test, ok := keyCases[b.name()]
		if !ok {
			test, ok = requestKeyCases[b.name()]
		}
		if !ok {
			test, ok = expertKeyCases[b.name()]
		}
		if !ok {
			test, ok = latencyKeyCases[b.name()]
		}
		if !ok {
			t.Errorf("key %s has no test", b.Show)
			continue
		}
		t.Run(b.Show, func(t *testing.T) {
			a, k := withCalls(t)
			a.View()
			test(t, a, k)
		})
	}
}

// The help lists every key and every number.
func TestHelpListsEveryKey(t *testing.T) {
	for _, v := range allViews {
		words := keysOf(Config{}).help.textOf(100, v, distinct(liveKeys()))
		for _, b := range liveKeys() {
			if b.Help == "" || !strings.Contains(words, b.Help[:min(len(b.Help), 20)]) {
				t.Errorf("the help of view %d does not explain %s", v, b.names())
			}
		}
		for _, n := range slices.Concat(store.Terms, store.ScreenTerms) {
			if !strings.Contains(words, n.Title+" ") {
				t.Errorf("the help of view %d does not explain %s", v, n.Title)
			}
		}
	}
}

// boundOnce fails if a key has two actions in one view; a binding of some views may override one of all views.
func boundOnce(t *testing.T, keys []binding) {
	t.Helper()
	for _, v := range allViews {
		own, all := map[string]bool{}, map[string]bool{}
		for _, b := range keys {
			seen := own
			if b.views == everywhere {
				seen = all
			}
			for _, k := range b.Keys {
				if b.views.has(v) && seen[k] {
					t.Errorf("%s is bound twice in view %d", k, v)
				}
				seen[k] = seen[k] || b.views.has(v)
			}
		}
	}
}

func TestNoKeyIsBoundTwice(t *testing.T) {
	boundOnce(t, liveKeys())
	boundOnce(t, keysOf(Config{Replay: newPlayer()}).bindings)
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
	a.changeSession(func(x *Session) { x.Actions = view.Actions{} })
	a.press("p", "c", "+", "-")
	a.Update(tea.PasteMsg{Content: "text"})
	if a.editor.Open {
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

// Every view in every state of a session handles every key and draws a whole frame after it. A key that does nothing says
// why, or where it does something.
func TestEveryKeyInEveryState(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			everyKey(t, sc.Make().Snapshot(), 90, 28)
		})
	}
	for _, n := range []int{1, 20, 5000} {
		t.Run(strconv.Itoa(n)+" requests", func(t *testing.T) {
			t.Parallel()
			everyKey(t, viewtest.Crowd(n), 60, 18)
			everyKey(t, viewtest.Crowd(n), 200, 60)
		})
	}
}

// worksSomewhere reports whether a key does anything in a view with a tab.
func (a *app) worksSomewhere(key string) bool {
	return slices.ContainsFunc(a.working(), func(b binding) bool {
		return slices.Contains(b.Keys, key) && b.views&(1<<numTabs-1) != 0
	})
}

// everyKey presses every key in every view.
func everyKey(t *testing.T, s *store.Snapshot, w, h int) {
	for i := 0; i < len(allViews); i += eventtest.Step(3) {
		v := allViews[i]
		a := open(s, theme.Colours16, false, w, h)
		for _, b := range liveKeys() {
			if b.name() == "suspend" || b.name() == "quit" {
				continue
			}
			for _, key := range b.Keys {
				a.show(v)
				a.press(key)
				checkFrame(t, a.View().Content, w, h)
				a.notifyFor(0, "")
				if idle := a.find(key) == nil || a.find(key).why() != ""; idle && a.typist() == nil && !a.editor.Open && !a.palette.open {
					if a.press(key); a.toast == "" && (a.find(key) != nil || a.worksSomewhere(key)) {
						t.Errorf("view %d: %s does nothing and does not say why", a.view, key)
					}
				}
				if a.editor.Open || a.requests.Typing() || a.palette.open {
					a.press("esc")
				}
			}
		}
	}
}
