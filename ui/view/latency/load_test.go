package latency

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// An engine that was attached after its load keeps the lengths of the stages only: all bars begin at the left.
func TestLoadBeforeTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		begin event.Time
		want  string // where the bar of the last stage begins
	}{
		"in the session":     {event.Time(time.Second), "weights                #"},
		"before the session": {-event.Time(time.Minute), "weights #"},
	} {
		s := store.New(store.Options{Now: func() event.Time { return event.Time(time.Minute) }})
		at := tt.begin
		for _, st := range []event.Stage{event.StageLoadOpen, event.StageLoadWeights} {
			at += event.Time(10 * time.Millisecond)
			s.Emit(event.Event{Kind: event.KindStage, Stage: st, Layer: -1, At: at, Dur: int64(10 * time.Millisecond)})
		}
		s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, At: max(at, 1), Data: &event.EngineInfo{Name: "x", State: event.EngineReady}})
		var g grid.Grid
		g.Reset(48, 4)
		snap := s.Snapshot()
		loadTitle(g.All(), snap)
		drawLoad(g.All().Sub(0, 1, 48, 3), snap, &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)})
		screen := g.Plain()
		if !strings.Contains(screen, tt.want) || strings.Contains(screen, "lengths only") != (tt.begin < 0) {
			t.Errorf("%s:\n%s", name, screen)
		}
	}
}
