//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/runtime"
)

// What measuring may cost, as a share of the time of a pass, and how its cost is found out: passes with and without it take turns,
// for a while or until there are enough.
const (
	bearable     = 0.008 // under 1 %, with something to spare for what one look at the machine cannot tell
	mostEvery    = 256
	leastPairs   = 2
	mostPairs    = 96
	calibrateFor = 200 * time.Millisecond
)

// calibrate finds in one of how many passes the hooks may measure. Decoding one token is the case in which they cost the most.
func (e *Engine) calibrate() error {
	var off, on []float64
	hooks := runtime.Hooks{Split: true, Experts: true, Every: 1}
	began := time.Now()
	for n := 0; n < leastPairs || n < mostPairs && time.Since(began) < calibrateFor; n++ {
		for _, h := range []runtime.Hooks{{}, hooks} {
			e.SetHooks(h)
			took, err := e.token()
			if err != nil {
				return err
			}
			if h == hooks {
				on = append(on, took)
			} else {
				off = append(off, took)
			}
		}
	}
	e.SetHooks(runtime.Hooks{})
	e.auto = everyFor(slices.Min(on)/slices.Min(off) - 1) // the shortest are those that nothing else disturbed
	e.passes = [2]int{}
	if e.trace.count != nil {
		e.trace.count = newCounts(e.trace.info) // these were nobody's tokens
	}
	return nil
}

// everyFor is in one of how many passes measuring stays bearable if it adds such a share to each.
func everyFor(cost float64) int {
	return int(min(max(math.Ceil(cost/bearable), 1), mostEvery))
}

// token times the decoding of one token behind nothing, in ns.
func (e *Engine) token() (float64, error) {
	b := runtime.Batch{Rows: []runtime.Row{{Logits: true}}}
	began := time.Now()
	err := e.Forward(&b)
	took := float64(time.Since(began))
	e.Release(0)
	return took, err
}
