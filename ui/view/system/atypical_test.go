package system

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestAtypicalNeedsSamples checks that a value stands out only among enough samples, and only if few are like it.
func TestAtypicalNeedsSamples(t *testing.T) {
	for _, c := range []struct {
		name       string
		high, rest int     // samples of 9 and of 1
		unit       float64 // of a share
		want       bool
	}{
		{"rare", 5, 15, .1, true},
		{"too few samples", 4, 15, .1, false},
		{"not rare", 6, 14, .1, false},
		{"nearly nothing", 5, 15, .001, false},
	} {
		pts := make([]store.HostPoint, c.high+c.rest)
		for i := range pts {
			pts[i].V[event.GaugeCPU] = c.unit
			if i < c.high {
				pts[i].V[event.GaugeCPU] = 9 * c.unit
			}
		}
		var g gaugeSums
		g.update(pts)
		if got := g.atypical(event.GaugeCPU, 9*c.unit); got != c.want || g.atypical(event.GaugeCPU, c.unit) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
