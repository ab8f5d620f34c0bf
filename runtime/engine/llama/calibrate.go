//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
)

// Limits of the cost of measuring, as a fraction of the time of a pass. To find the cost, passes with and without
// measuring alternate, for calibrateFor or until there are maxPairs.
const (
	maxCost      = 0.008 // below the 1 % budget, with a margin for the noise of one calibration
	maxEvery     = 256
	minPairs     = 2
	maxPairs     = 96
	calibrateFor = 200 * time.Millisecond
)

// calibrate chooses the sampling interval of the hooks. It measures decoding of one token, where hooks cost the most.
func (e *Engine) calibrate() error {
	var off, on []float64
	hooks := engine.Hooks{Split: true, Experts: true, Every: 1}
	began := time.Now()
	for n := 0; n < minPairs || n < maxPairs && time.Since(began) < calibrateFor; n++ {
		for _, h := range []engine.Hooks{{}, hooks} {
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
	e.SetHooks(engine.Hooks{})
	e.autoEvery = everyFor(slices.Min(on)/slices.Min(off) - 1) // the shortest passes are the least disturbed
	e.passes = [2]int{}
	e.trace.prepare(e.trace.info) // drops the counts of calibration
	return nil
}

// everyFor returns the sampling interval that keeps the cost bearable, if measuring adds the given fraction to a pass.
func everyFor(cost float64) int {
	return int(min(max(math.Ceil(cost/maxCost), 1), maxEvery))
}

// token times the decoding of one token with an empty context, in ns.
func (e *Engine) token() (float64, error) {
	b := engine.Batch{Rows: []engine.Row{{Logits: true}}}
	began := time.Now()
	err := e.Forward(&b)
	took := float64(time.Since(began))
	e.Release(0)
	return took, err
}
