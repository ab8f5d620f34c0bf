package native

import (
	"testing"
)

// TestLimits: cached products must be faster than products from memory, also with several threads.
func TestLimits(t *testing.T) {
	l := MeasureLimits(1)
	if l.Threads != 1 || l.Read <= 0 || l.Compute <= l.Read {
		t.Errorf("%+v: the caches' products must beat the memory's", l)
	}
}
