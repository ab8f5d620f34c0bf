package ui

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/ui/grid"
)

// popups returns how many pop-ups are on the screen.
func (a *app) popups() (n int) {
	for _, open := range []bool{a.editor.Open, a.palette.open, a.alertsOpen, a.marks.shown(), a.typist() != nil} {
		if open {
			n++
		}
	}
	return n
}

// Of two pop-ups, opened one after the other, one is on the screen, and esc closes it alone. Those with an input line
// take the keys of others as text. Help and engines are views that cover others.
func TestPopupsNeverStack(t *testing.T) {
	openers := []string{"p", ":", "a", "M", "/", "?", "l"}
	views := map[string]viewID{"?": viewHelp, "l": viewEngines}
	for _, first := range openers {
		for _, second := range openers {
			if first == second {
				continue
			}
			a, _ := withCalls(t)
			a.show(viewRequests)
			a.press("m")
			a.press(first)
			typed := a.palette.open || a.editor.Open || a.typist() != nil
			before := a.view
			a.press(second)
			a.View()
			if got := a.popups(); got > 1 {
				t.Errorf("%s then %s: %d pop-ups at once", first, second, got)
			}
			if v, ok := views[second]; ok && !typed && (a.view != v || a.popups() != 0) {
				t.Errorf("%s then %s: view %d with %d pop-ups", first, second, a.view, a.popups())
			}
			if a.popups() == 0 {
				continue
			}
			a.press("esc")
			if a.popups() != 0 || a.view != before {
				t.Errorf("%s then %s: esc leaves %d pop-ups in view %d, want none in view %d", first, second, a.popups(), a.view, before)
			}
		}
	}
}

// A pasted text opens the prompt editor in place of a list.
func TestPasteClosesAList(t *testing.T) {
	a, _ := withCalls(t)
	a.press("a")
	a.Update(tea.PasteMsg{Content: "text"})
	if !a.editor.Open || a.popups() != 1 {
		t.Errorf("%d pop-ups after a paste", a.popups())
	}
}

// A click on a pop-up does nothing in the view below it.
func TestPopupsTakeClicks(t *testing.T) {
	a, _ := withCalls(t)
	for _, key := range []string{"p", "a", "M"} {
		a.press("m", key)
		a.View()
		if a.popup == (grid.Rect{}) {
			t.Fatalf("%s has no place", key)
		}
		focus := a.overview.Focus
		for range 2 {
			for y := range a.popup.H {
				a.Update(tea.MouseClickMsg{X: a.popup.X + 5, Y: a.popup.Y + y, Button: tea.MouseLeft})
			}
		}
		if a.view != viewOverview || a.overview.Focus != focus {
			t.Errorf("a click on the pop-up of %s reaches the view", key)
		}
		a.press("esc")
	}
}
