package chrome

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// frame returns a frame without colours.
func frame() *pane.Frame {
	return &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode), Scratch: &pane.Scratch{}}
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
		DrawHeader(g.All(), s, &Status{}, frame())
		i := strings.Index(g.Plain(), "dropped 0")
		if at >= 0 && i != at || i < 0 {
			t.Errorf("self %v: the counter of drops is at %d, before at %d:\n%s", v, i, at, g.Plain())
		}
		at = i
	}
}
