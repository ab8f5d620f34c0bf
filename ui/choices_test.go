package ui

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func TestChoicesAreRestored(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
	if got := a.choices(); got.Sort != "age" || got.Reverse {
		t.Errorf("defaults: %+v", got)
	}
	a.press("2", ">", "r", "t", "e", "w")
	want := a.choices()
	b := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }}), Choices: want, Theme: want.Theme})
	if got := b.choices(); got != want || b.view != viewOverview || got.Sort == "age" || b.requests.Follow {
		t.Errorf("restored %+v, want %+v", got, want)
	}
}

// Unknown choices, from another version or from a file edited by hand, change nothing.
func TestUnknownChoicesChangeNothing(t *testing.T) {
	plain := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }})}).choices()
	odd := Choices{Theme: "no such", Window: "1 h", Phase: "\x1b[2J", Sort: "colour"}
	if got := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return viewtest.LiveSnapshot() }}), Choices: odd, Theme: odd.Theme}).choices(); got != plain {
		t.Errorf("%+v, want %+v", got, plain)
	}
}

// TestPreviewIsNoChoice checks that a theme under the cursor of the list is not remembered when the screen ends.
func TestPreviewIsNoChoice(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
	before := a.choices()
	shown := a.skin.Palette.Name
	a.press("T", "down")
	if a.skin.Palette.Name == shown {
		t.Fatal("the list previews nothing")
	}
	if got := a.choices(); got != before {
		t.Errorf("remembered %+v, want %+v", got, before)
	}
}
