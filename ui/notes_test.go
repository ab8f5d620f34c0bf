package ui

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// A note belongs to the view in which a key caused it: another view shows its own keys.
func TestNotesEndWithTheirView(t *testing.T) {
	a, _ := withCalls(t)
	a.press("w")
	holds(t, a, "window: ")
	a.press("2")
	if holds(t, a, "enter open"); strings.Contains(a.screen(), "window: ") {
		t.Error("the note stays in another view")
	}
}

// Errors have the colour of errors, other notes do not.
func TestErrorsAreRed(t *testing.T) {
	a, k := withCalls(t)
	colour := regexp.MustCompile(`38;2;\d+;\d+;\d+`)
	is := func(role theme.Role, words string) {
		t.Helper()
		holds(t, a, words)
		var g grid.Grid
		g.Reset(1, 1)
		g.All().Text(0, 0, grid.Fg(role), "x")
		before, _, _ := strings.Cut(a.View().Content, words)
		all := colour.FindAllString(before, -1)
		if want := colour.FindString(g.Encode(a.skin)); !strings.HasPrefix(all[len(all)-1], want) {
			t.Errorf("%q has colour %s, want %s", words, all[len(all)-1], want)
		}
	}
	a.press("c")
	is(theme.Accent, "request cancelled")
	k.err = errors.New("queue is full")
	a.press("c")
	is(theme.Bad, "queue is full")
	a.press("w")
	is(theme.Accent, "window: ")
}

// An engine that is not connected takes no prompts.
func TestNoPromptWithoutConnection(t *testing.T) {
	for _, l := range viewtest.Links {
		s := *viewtest.Remote(l.Remote)
		s.Engine.Caps |= event.CapPrompt
		a := open(&s, theme.TrueColour, false, 160, 45)
		want := l.Link == event.LinkConnected || l.Link == event.LinkStale
		if got := strings.Contains(a.screen(), "p prompt"); got != want {
			t.Errorf("%s: the footer offers a prompt: %v", l.Name, got)
		}
		if a.press("p"); a.editor.Open != want {
			t.Errorf("%s: p opens the editor: %v", l.Name, a.editor.Open)
		}
		if !want {
			holds(t, a, "p: the engine is not connected")
		}
	}
}

// What was measured of an engine can be saved whether it is connected or not.
func TestReportWithoutConnection(t *testing.T) {
	for _, l := range viewtest.Links {
		a, k := open(viewtest.Remote(l.Remote), theme.TrueColour, false, 160, 45), &calls{}
		a.changeSession(func(x *Session) { x.Actions = k.actions() })
		a.saveReport = func(_, _ []byte) (string, error) { return "report.json", nil }
		save := a.press("S")
		if save == nil {
			t.Errorf("%s: no report", l.Name)
			continue
		}
		a.Update(save())
		holds(t, a, "wrote report.json")
	}
}

// While the user types, the footer shows the keys of the input line, and those of the view again afterwards.
func TestFooterWhileTyping(t *testing.T) {
	for _, v := range []string{"2", "5"} {
		a, _ := withCalls(t)
		a.press(v, "/")
		footer := func() string {
			a.View()
			return strings.TrimSpace(a.grid.Plain()[strings.LastIndex(strings.TrimRight(a.grid.Plain(), "\n"), "\n"):])
		}
		if got := footer(); !strings.HasSuffix(got, "7 Engines   enter keep  esc undo") {
			t.Errorf("view %s: %q", v, got)
		}
		if a.press("esc"); !strings.Contains(footer(), "esc back") {
			t.Errorf("view %s after typing: %q", v, footer())
		}
	}
}

// A long note takes the names of the tabs, and the tabs only if it needs their room too.
func TestLongNotesKeepTheTabs(t *testing.T) {
	a, _ := withCalls(t)
	for width, want := range map[int]string{20: " 1 Overview  2 Requests ", 60: " 1 Ovw  2 Rqs  3 Req ", 110: " n"} {
		a.Notify(strings.Repeat("n", width))
		a.dirty = true
		a.View()
		last := strings.Split(a.grid.Plain(), "\n")[a.h-1]
		if !strings.HasPrefix(last, want) || !strings.Contains(last, a.toast) {
			t.Errorf("a note of %d cells: %q", width, last)
		}
		if (len(a.drawnTabs) > 0) != (width < 110) {
			t.Errorf("a note of %d cells: %d tabs can be clicked", width, len(a.drawnTabs))
		}
	}
}
