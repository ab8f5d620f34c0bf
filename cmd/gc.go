package cmd

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// How much the heap grows, in percent of the data, before the garbage collector runs. The engine beside llmtop needs the
// memory, but each collection takes some milliseconds of a core: little data is collected at minPercent, and what
// allocates so fast that collections would come more often than collectEvery, at more, up to maxPercent.
const (
	minPercent   = 10
	maxPercent   = 40
	collectEvery = 2 * time.Second
	idleAfter    = 5 * collectEvery // without a collection, llmtop has no more work
)

// gcTuner adjusts the garbage collector after each collection, so that nothing has to wake up for it.
type gcTuner struct {
	percent int
	last    time.Time // end of the last collection
}

// tuneGC adjusts the garbage collector, unless the user has set GOGC.
func tuneGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(maxPercent)
	(&gcTuner{maxPercent, time.Now()}).arm()
}

// arm makes the next collection call collected: t is reachable from nowhere else.
func (t *gcTuner) arm() { runtime.SetFinalizer(t, (*gcTuner).collected) }

func (t *gcTuner) collected() {
	now := time.Now()
	since := now.Sub(t.last)
	next := nextPercent(t.percent, since)
	if t.percent > minPercent && since > idleAfter {
		debug.FreeOSMemory() // what the work needed: the runtime would keep most of it
	}
	t.last = now
	if next != t.percent {
		t.percent = next
		debug.SetGCPercent(next)
	}
	t.arm()
}

// nextPercent returns the percentage at which collections would come collectEvery, after one that came since the last
// one at the given percentage.
func nextPercent(percent int, since time.Duration) int {
	wanted := float64(percent) * float64(collectEvery) / float64(max(since, time.Millisecond))
	return int(min(max(wanted, minPercent), maxPercent))
}
