package ui

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
)

func TestChoicesComeBack(t *testing.T) {
	a := open(liveSnapshot(), theme.TrueColour, false, 120, 36)
	if got := a.choices(); got.Sort != "age" || got.Reverse {
		t.Errorf("nothing was chosen: %+v", got)
	}
	a.press("2", ">", "r", "t", "e", "w")
	want := a.choices()
	b := newApp(Config{Snapshots: func() *store.Snapshot { return liveSnapshot() }, Choices: want, Theme: want.Theme})
	if got := b.choices(); got != want || b.view != viewOverview || got.Sort == "age" || b.requests.shown.Follow {
		t.Errorf("recalled %+v, want %+v", got, want)
	}
}

// Choices that mean nothing, because a file is of another version or was written by somebody else, change nothing.
func TestUnknownChoicesChangeNothing(t *testing.T) {
	plain := newApp(Config{Snapshots: func() *store.Snapshot { return liveSnapshot() }}).choices()
	odd := Choices{Theme: "no such", Window: "1 h", Phase: "\x1b[2J", Sort: "colour"}
	if got := newApp(Config{Snapshots: func() *store.Snapshot { return liveSnapshot() }, Choices: odd, Theme: odd.Theme}).choices(); got != plain {
		t.Errorf("%+v, want %+v", got, plain)
	}
}
