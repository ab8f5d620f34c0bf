package watch

import (
	"testing"
	"time"
)

// TestForWithoutHeadless checks that the error names only that problem.
func TestForWithoutHeadless(t *testing.T) {
	for want, o := range map[string]Options{
		"--for -1s: must be more than 0": {length: -time.Second},
		"--for 0s: must be more than 0":  {timed: true},
	} {
		o.every = time.Second
		if err := o.check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
