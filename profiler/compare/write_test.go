package compare

import (
	"strings"
	"testing"
)

// Routing that is the same names no layer and no expert.
func TestNoDriftNamesNoExpert(t *testing.T) {
	for moved, want := range map[float64]string{0: "below 0.1 % of each layer's picks", 0.02: "at most 2.0 % of a layer's picks (layer 3; largest change: expert 5, +1.0 points)"} {
		var b strings.Builder
		r := Result{Experts: []LayerDrift{{Layer: 3, Drift: moved, Expert: 5, Change: moved / 2}}}
		if r.writeDrift(&b); !strings.Contains(b.String(), want) {
			t.Errorf("drift %v: %q, want %q", moved, b.String(), want)
		}
	}
}
