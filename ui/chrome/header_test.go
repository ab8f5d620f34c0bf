package chrome

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// frame returns a frame without colours.
func frame() *pane.Frame {
	return &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode)}
}

// The part of the header that shows llmtop's own use has one width, whatever the numbers are.
func TestHeaderStaysInPlace(t *testing.T) {
	at := -1
	for _, v := range []struct{ cpu, rss float64 }{{0, 9.5e6}, {0.01, 40.9e6}, {0.12, 105e6}, {1, 1.02e9}} {
		s := &store.Snapshot{Host: store.Host{Host: &event.Host{}, Sampled: true}}
		s.Host.Self.CPU, s.Host.Self.RSS = event.MeasuredValue(v.cpu), event.MeasuredValue(v.rss)
		s.Engine.State = event.EngineReady
		var g grid.Grid
		g.Reset(120, 1)
		DrawHeader(g.All(), s, frame(), &Status{})
		i := strings.Index(g.Plain(), "dropped 0")
		if at >= 0 && i != at || i < 0 {
			t.Errorf("self %v: the counter of drops is at %d, before at %d:\n%s", v, i, at, g.Plain())
		}
		at = i
	}
}

// The screen that is too small for panes drops whole numbers, and marks what is cut.
func TestSmallScreen(t *testing.T) {
	s := store.New(store.Options{Now: func() event.Time { return 1 }}).Snapshot()
	s.Engine.State, s.Engine.Remote.Link = event.EngineReady, event.LinkConnected
	s.Latency.Of[store.ITL][metric.Session] = metric.Summary{Count: 9, P50: 120e3, P99: 565e3}
	c := frame()
	c.Window = metric.Session
	var g grid.Grid
	g.Reset(24, 6)
	DrawSmallScreen(g.All(), s, c, &Status{})
	got := strings.Split(g.Plain(), "\n")
	for y, want := range []string{0: "○ connected, idle", 2: "ITL     120 µs p50", 4: "events  dropped 0 · mis…", 5: "needs 60x18: 24x6 here"} {
		if want != "" && strings.TrimRight(got[y], " ") != want {
			t.Errorf("row %d: %q, want %q", y, got[y], want)
		}
	}
}
