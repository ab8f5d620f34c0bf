package placement

import (
	"fmt"
	"math"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Trial is what a plan was predicted to gain, and what was measured: speeds with all experts on the slower memory, and with
// those of the plan on the faster device, in turns.
type Trial struct {
	Device    string       // which is faster; "": the engine has none, so that the plan moves nothing
	SlowBytes [2]float64   // bytes of experts that a token reads from the slower memory, without and with the plan
	ReadRate  float64      // B/s that the engine's threads can read from it
	Speeds    [2][]float64 // tokens/s of one request of each turn, likewise
}

// Predicted returns the largest gain in speed that the plan can bring: if the bytes on the device take no time at all. It is
// unknown if reading all experts would take longer than the engine takes, because they then come from caches.
func (t *Trial) Predicted() (gain float64, ok bool) {
	if t.Device == "" {
		return 1, true
	}
	token := 1 / metric.Median(t.Speeds[0])
	if t.ReadRate <= 0 || t.SlowBytes[0]/t.ReadRate >= token {
		return 0, false
	}
	return token / (token - (t.SlowBytes[0]-t.SlowBytes[1])/t.ReadRate), true
}

// Measured returns the median, the lowest and the highest gain of the turns.
func (t *Trial) Measured() (median, low, high float64) {
	gains := make([]float64, len(t.Speeds[0]))
	low = math.Inf(1)
	for i, without := range t.Speeds[0] {
		gains[i] = t.Speeds[1][i] / without
		low, high = min(low, gains[i]), max(high, gains[i])
	}
	return metric.Median(gains), low, high
}

// The bounds of Verdict.
const (
	agrees  = 0.05 // difference from the prediction that turns may show by chance
	reached = 0.8  // share of the predicted gain in time from which the prediction holds: the device takes some time, too
)

// Verdict compares what was predicted with what was measured.
func (t *Trial) Verdict() string {
	gain, ok := t.Predicted()
	median, low, high := t.Measured()
	differs := median < 1-agrees && high < 1 || median > 1+agrees && low > 1
	switch {
	case t.Device == "" && !differs:
		return "as predicted: llama.cpp has no faster device here, so the plan moves nothing and gains nothing"
	case t.Device == "":
		return fmt.Sprintf("unlike predicted: llama.cpp has no faster device here, but it is %s times as fast; it stores the experts of the plan in another form", metric.Rate(median))
	case !ok:
		return "no prediction: the engine reads its experts faster than its threads can read memory, so they come from caches"
	case !differs:
		return fmt.Sprintf("no gain measured, %s times predicted at most: reading experts from the slower memory does not limit this engine", metric.Rate(gain))
	case median > gain*(1+agrees):
		return "more than predicted: the experts of the plan also compute faster on the device"
	case 1-1/median >= reached*(1-1/gain):
		return "as predicted: reading experts from the slower memory is what limits this engine"
	}
	return fmt.Sprintf("less than predicted: %s of the time that the plan could save", metric.Percent((1-1/median)/(1-1/gain)))
}
