package eventtest

import "testing"

// SkipUnderRace skips a test under the race detector, which makes it some ten times slower. Use it for long tests of one
// goroutine, in which there is no race to find. They run without the detector.
func SkipUnderRace(t testing.TB) {
	t.Helper()
	if underRace {
		t.Skip("one goroutine has no races")
	}
}

// Step returns the step of a loop over many similar cases: 1, or n under the race detector.
func Step(n int) int {
	if underRace {
		return n
	}
	return 1
}
