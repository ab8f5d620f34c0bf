package system

import (
	"math"
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

// Without a sample in the window nothing is typical, not 0.
func TestNothingIsTypicalWithoutSamples(t *testing.T) {
	var sums gaugeSums
	for _, pts := range [][]store.HostPoint{nil, {{At: 1}}, nil} {
		sums.update(pts)
		if got := math.IsNaN(sums.typical[event.GaugeCPU]); got != (len(pts) == 0) {
			t.Errorf("%d samples: typical is %v", len(pts), sums.typical[event.GaugeCPU])
		}
	}
}
