package native

import (
	"testing"
)

// TestLimits: there are limits, and more threads than one do not change what is asked for.
func TestLimits(t *testing.T) {
	l := MeasureLimits(1)
	if l.Threads != 1 || l.Read <= 0 || l.Compute <= l.Read {
		t.Errorf("%+v: the caches' products must beat the memory's", l)
	}
}
