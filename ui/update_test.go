package ui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// ticking is a model over a snapshot that a test can change; draws counts the frames drawn by ticks.
type ticking struct {
	*app
	last  *store.Snapshot
	draws int
}

func newTicking(s *store.Snapshot) *ticking {
	t := &ticking{last: s}
	t.app = newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return t.last }}), Profile: theme.TrueColour, FPS: 10})
	t.app.saveScreen = discardScreen
	t.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	t.Update(tickMsg{})
	t.View()
	return t
}

// change makes a new snapshot, as the store does after an event.
func (t *ticking) change(f func(*store.Snapshot)) {
	next := *t.last
	next.Version++
	f(&next)
	t.last = &next
}

// tick runs n ticks and returns the number of frames drawn.
func (t *ticking) tick(n int) int {
	t.draws = 0
	for range n {
		t.Update(tickMsg{})
		if t.dirty {
			t.draws++
		}
		t.View()
	}
	return t.draws
}

func TestFramesAreDrawnOnChange(t *testing.T) {
	k := newTicking(viewtest.LiveSnapshot())
	if n := k.tick(50); n != 0 {
		t.Errorf("drew %d frames of an unchanged snapshot", n)
	}
	k.change(func(s *store.Snapshot) { s.Now += event.Time(time.Second) })
	if n := k.tick(10); n != 1 {
		t.Errorf("drew %d frames of one change, want 1", n)
	}
	k.press("w") // a key draws a frame at once, and one more when its note disappears
	if k.View(); k.dirty {
		t.Error("a key left the frame undrawn")
	}
	if n := k.tick(100); n != 1 {
		t.Errorf("drew %d frames after a key, want 1", n)
	}
	k.change(func(s *store.Snapshot) { s.Throughput.Queued = 1 }) // the spinner runs
	if n := k.tick(10); n != 10 {
		t.Errorf("drew %d frames of a spinner in 10 ticks", n)
	}
}

func TestPausedViewStaysStill(t *testing.T) {
	k := newTicking(viewtest.LiveSnapshot())
	k.press("space")
	before := k.View().Content
	for range 20 {
		k.change(func(s *store.Snapshot) {
			s.Now += event.Time(time.Second)
			s.Counts.GeneratedTokens++
		})
		k.tick(1)
	}
	if k.View().Content != before {
		t.Error("the paused view changed")
	}
	k.press("space")
	k.tick(1)
	if k.View().Content == before {
		t.Error("the view does not resume")
	}
}

// Without changes the screen waits for the store to signal one; with changes it keeps its frame rate.
func TestScreenWaitsForAChange(t *testing.T) {
	k := newTicking(viewtest.LiveSnapshot())
	changed := make(chan struct{}, 1)
	k.changeSession(func(x *Session) { x.Changed = changed })
	wake := k.onTick()
	changed <- struct{}{}
	if wake(); len(changed) != 0 {
		t.Error("the tick after an unchanged one did not wait for a change")
	}
	k.change(func(*store.Snapshot) {})
	wake = k.onTick()
	changed <- struct{}{}
	if wake(); len(changed) != 1 {
		t.Error("the tick after a new frame did not keep the rate")
	}
}

// While another window has the focus, the screen updates once per second.
func TestBlurSlowsDown(t *testing.T) {
	k := newTicking(viewtest.LiveSnapshot())
	k.Update(tea.BlurMsg{})
	if !k.blurred {
		t.Error("a lost focus is ignored")
	}
	k.Update(tea.FocusMsg{})
	if k.blurred || !k.dirty {
		t.Error("a regained focus is ignored")
	}
}

func TestFrameRateIsBounded(t *testing.T) {
	for in, want := range map[int]int{-1: DefaultFPS, 0: DefaultFPS, 1: 1, 30: 30, 1000: MaxFPS} {
		a := newApp(Config{Sessions: One(Session{Snapshots: viewtest.LiveSnapshot}), FPS: in})
		if a.cfg.FPS != want {
			t.Errorf("%d frames a second became %d, want %d", in, a.cfg.FPS, want)
		}
	}
}

func TestMouse(t *testing.T) {
	a, _ := withCalls(t)
	a.View()
	for _, p := range a.overview.Placements {
		click := tea.MouseClickMsg{X: p.At.X + p.At.W/2, Y: p.At.Y + p.At.H/2, Button: tea.MouseLeft}
		a.overview.Focus = (p.ID + 1) % overview.NumPanes
		a.Update(click)
		if a.overview.Focus != p.ID || a.view != viewOverview {
			t.Errorf("a click on %v leaves the focus on %v", p.ID, a.overview.Focus)
		}
		a.Update(click)
		if a.view != zoomed(p.ID) || a.overview.Focus != p.ID {
			t.Errorf("a second click on %v does not zoom it", p.ID)
		}
		a.press("esc")
		a.View()
		a.overview.Focus = (p.ID + 1) % overview.NumPanes
		a.Update(tea.MouseClickMsg{X: p.At.X + 3, Y: p.At.Y, Button: tea.MouseLeft})
		if a.view != zoomed(p.ID) || a.overview.Focus != p.ID {
			t.Errorf("a click on the title of %v does not zoom it", p.ID)
		}
		a.press("esc")
		a.View()
	}
	focus := a.overview.Focus
	a.Update(tea.MouseClickMsg{X: 3, Y: 0, Button: tea.MouseLeft})
	if a.overview.Focus != focus || a.view != viewOverview {
		t.Error("a click on the header changed the view")
	}
	a.press("?")
	a.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if a.View(); a.help.first != wheel {
		t.Errorf("a notch of the wheel scrolls by %d", a.help.first)
	}
	a.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if a.View(); a.help.first != 0 {
		t.Errorf("a notch back scrolls to %d", a.help.first)
	}
}

// Every tab can be clicked, from every view and at every width.
func TestTabsCanBeClicked(t *testing.T) {
	for _, w := range []int{60, 80, 120, 200} {
		a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, 30)
		for _, from := range allViews {
			for to := range numTabs {
				a.show(from)
				a.View()
				at := a.drawnTabs[to]
				a.Update(tea.MouseClickMsg{X: at.X + at.W/2, Y: 29, Button: tea.MouseLeft})
				if a.view != to || len(a.drawnTabs) != int(numTabs) {
					t.Errorf("%d columns: a click on %s leads from view %d to %d", w, viewName(to), from, a.view)
				}
			}
		}
	}
}
