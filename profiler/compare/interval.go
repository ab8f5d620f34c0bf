package compare

import (
	"math"
	"math/rand/v2"

	"github.com/llmtop/llmtop/profiler/metric"
)

// estimate is a difference of logarithms, new less base, with its uncertainty by Student's t distribution.
type estimate struct {
	diff, stderr float64
	freedom      int // degrees of freedom; 0: too few runs, the uncertainty is unknown
}

// The minimum number of runs per side. One run says nothing about other runs. Runs in turns form pairs, of which three
// are a sample. Before and after need more: the trend over a few runs misses noise that is slower than they are.
const (
	minPairs  = 3
	minBlocks = 5
)

// caution widens the variance of runs before and after. Noise that is slower than a side, and a drift that goes on from
// one side to the other, separate the sides by more than the trend within them shows.
const caution = 2

// newEstimate compares runs, not requests: requests of one run share its noise. Noise also lasts over several runs.
//
// Runs measured in turns form pairs that share slow noise, so the differences within pairs are independent samples.
//
// For runs measured before and after a change, the variance of a side's mean comes from the trend of the side over its
// runs, the part of the noise that is as slow as the side is long. Faster parts understate it if noise is
// autocorrelated. This is the projection of Lazarus, Lewis, Stock and Watson, "HAR Inference: Recommendations for
// Practice" (2018), with one term a side, as Müller, "HAC Corrections for Strongly Autocorrelated Time Series" (2014)
// and Dou, "Optimal HAR Inference" (2024) derive for strong persistence: few terms, so few degrees of freedom. The term
// is a line, not a cosine, so that a steady drift is measured in full.
func newEstimate(a, b runs) estimate {
	x, y := a.typicalPerRun(), b.typicalPerRun()
	e := estimate{diff: mean(y) - mean(x)}
	fewest := min(len(x), len(y))
	switch {
	case inTurns(a, b) && fewest >= minPairs:
		n := float64(fewest)
		sum := 0.0
		for i := range x {
			d := y[i] - x[i] - e.diff
			sum += d * d
		}
		e.stderr, e.freedom = math.Sqrt(sum/(n-1)/n), fewest-1
	case !inTurns(a, b) && fewest >= minBlocks:
		tx, ty := trend(x), trend(y)
		variance := caution * (tx*tx + ty*ty) / 2 // of a run, as the mean of a side shows it
		e.stderr, e.freedom = math.Sqrt(variance/float64(len(x))+variance/float64(len(y))), 2
	}
	return e
}

// trend returns the projection of v on a line with mean 0 and length 1. Its square estimates the variance of v if v is
// white noise.
func trend(v []float64) float64 {
	sum, squares := 0.0, 0.0
	for i, x := range v {
		at := float64(i) - float64(len(v)-1)/2
		sum += at * x
		squares += at * at
	}
	return sum / math.Sqrt(squares)
}

// Order draws which side goes first in each turn, 0 or 1: by a coin. If they alternated, noise that repeats every few runs
// would always hit the same side.
func Order(turns int, rng *rand.Rand) []int {
	first := make([]int, turns)
	for i := range first {
		first[i] = rng.IntN(2)
	}
	return first
}

// inTurns reports whether the runs of both sides alternate: both runs of a turn are newer than those of the turn before.
// Either side may begin a turn.
func inTurns(a, b runs) bool {
	if len(a) != len(b) || len(a) < 2 {
		return false
	}
	for i := 1; i < len(a); i++ {
		for _, old := range []run{a[i-1], b[i-1]} {
			if !old.start.Before(a[i].start) || !old.start.Before(b[i].start) {
				return false
			}
		}
	}
	return true
}

// interval returns the 95 % confidence interval of the difference.
func (e *estimate) interval() (low, high float64) {
	if e.freedom == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	half := metric.StudentT(e.freedom) * e.stderr
	return e.diff - half, e.diff + half
}

// chance returns the probability of a difference of at least this size in its direction between two equal sides.
func (e *estimate) chance() float64 {
	if e.freedom == 0 || e.diff == 0 {
		return 1
	}
	return metric.StudentTail(math.Abs(e.diff)/e.stderr, e.freedom)
}
