//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRate drives the rate with the clock of made-up devices: measuring costs 1 % at most, and as much as it may where it
// costs more than that.
func TestRate(t *testing.T) {
	for _, device := range []struct {
		name      string
		slower    [settle + 1]float64 // by which share a measured pass, and those after it, are slower
		noise     float64
		atLeast   int // passes measured
		rows      func(pass int) int
		more      float64 // times the cost in the second half
		interrupt int     // passes between prompts
	}{
		{name: "free", atLeast: 15000},
		{name: "a large model on a CPU", slower: [4]float64{.004}, noise: .001, atLeast: 12000},
		{name: "a small model on a CPU", slower: [4]float64{.17}, noise: .01, atLeast: 900},
		{name: "a GPU that waits for each layer", slower: [4]float64{.58}, noise: .01, atLeast: 300},
		{name: "a GPU that records its graph again", slower: [4]float64{.58, .3, .45}, noise: .01, atLeast: 150},
		{name: "a GPU that becomes slower", slower: [4]float64{.2, .1}, noise: .01, more: 6, atLeast: 150},
		{name: "a device for which it takes 20 passes", slower: [4]float64{20}, noise: .01, atLeast: 6},
		{name: "batches that change", slower: [4]float64{.58, .3}, noise: .01, rows: func(pass int) int { return 1 + pass/300%4 }, atLeast: 150},
		{name: "prompts between", slower: [4]float64{.58, .3}, noise: .01, interrupt: 400, atLeast: 150},
	} {
		t.Run(device.name, func(t *testing.T) {
			const passes, calibration = 60000, 100
			random := rand.New(rand.NewPCG(1, 2))
			r := rate{every: startEvery, age: settle}
			var plain, spent float64
			measured, age := 0, settle
			for pass := range passes {
				if pass == calibration {
					r.every = r.wanted()
				}
				if device.interrupt > 0 && pass%device.interrupt == 0 {
					r.disturb()
				}
				age++
				due := r.due()
				if due {
					age = 0
				}
				rows := 1
				if device.rows != nil {
					rows = device.rows(pass)
				}
				took := 2e6 * math.Sqrt(float64(rows)) * (1 + float64(pass%5000)/5000) // a longer context
				base := took
				if age <= settle {
					share := device.slower[age]
					if device.more > 0 && pass > passes/2 {
						share *= device.more
					}
					took *= 1 + share
				}
				if pass > calibration {
					plain, spent = plain+base, spent+took
					if due {
						measured++
					}
				}
				if random.IntN(500) == 0 { // the machine stalls
					took *= 3
				}
				r.took(rows, took*(1+device.noise*random.NormFloat64()))
			}
			cost := spent/plain - 1
			t.Logf("%d measured, %.2f %%", measured, 100*cost)
			if cost > .01 || measured < device.atLeast {
				t.Errorf("measuring %d of %d passes cost %.2f %%, want 1 %% at most and %d passes", measured, passes, 100*cost, device.atLeast)
			}
		})
	}
}
