package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// interval is a difference of logarithms with its 95 % confidence interval.
type interval struct {
	diff, low, high float64
	tooFew          bool // too few samples for an interval
}

const (
	resamples = 2000
	// minRuns is the number of runs per side from which runs are resampled. With fewer runs, requests are resampled,
	// and the interval does not include the variation between runs.
	minRuns = 3
	// minRequests is the minimum number of requests per prompt, or of prompts, for resampling.
	minRequests = 5
)

// estimate computes the difference between two sides by bootstrap. It resamples runs if there are enough of them,
// because requests of one run are correlated, otherwise requests.
func estimate(a, b runs, o Options) interval {
	rng := rand.New(rand.NewPCG(o.Seed, 0x6c6c6d746f70))
	switch {
	case min(len(a), len(b)) < minRuns:
		return byRequest(a.pooled(), b.pooled(), rng)
	case o.Interleaved && len(a) == len(b):
		pairs := subtract(b.typicalPerRun(), a.typicalPerRun())
		return bootstrap(len(pairs)-1, len(pairs), func(pick func(int) int) float64 { return drawMean(pairs, pick) }, rng)
	default:
		x, y := a.typicalPerRun(), b.typicalPerRun()
		return bootstrap(len(x)+len(y)-2, min(len(x), len(y)), func(pick func(int) int) float64 {
			return drawMean(y, pick) - drawMean(x, pick)
		}, rng)
	}
}

// byRequest resamples the requests of each prompt. If a prompt has too few requests, it resamples prompts, each of
// which is a pair.
func byRequest(a, b run, rng *rand.Rand) interval {
	keys := a.prompts()
	fewest, total := math.MaxInt, 0
	var pairs []float64
	for _, key := range keys {
		n := min(len(a[key]), len(b[key]))
		fewest, total = min(fewest, n), total+n
		pairs = append(pairs, median(b[key])-median(a[key]))
	}
	switch {
	case fewest >= minRequests:
		return bootstrap(2*total-2, total, func(pick func(int) int) float64 {
			sum := 0.0
			for _, key := range keys {
				sum += median(resample(b[key], pick)) - median(resample(a[key], pick))
			}
			return sum / float64(len(keys))
		}, rng)
	case len(keys) >= minRequests:
		return bootstrap(len(pairs)-1, len(pairs), func(pick func(int) int) float64 { return drawMean(pairs, pick) }, rng)
	}
	diff := mean(pairs)
	return interval{diff: diff, low: math.Inf(-1), high: math.Inf(1), tooFew: true}
}

// pooled merges all runs into one.
func (r runs) pooled() run {
	out := run{}
	for _, one := range r {
		for key, values := range one {
			out[key] = append(out[key], values...)
		}
	}
	return out
}

// bootstrap computes a statistic on resamples and returns the 95 % interval of its percentiles. The bootstrap of n
// samples is too narrow by the square root of (n-1)/n and treats the spread as known; the interval is widened around
// the estimate to correct both, as in Hesterberg, "What Teachers Should Know About the Bootstrap", section 3.2 (2014).
// pick returns a random index below n; nil means no resampling.
func bootstrap(freedom, n int, statistic func(pick func(int) int) float64, rng *rand.Rand) interval {
	diff := statistic(nil)
	draws := make([]float64, resamples)
	for i := range draws {
		draws[i] = statistic(rng.IntN)
	}
	slices.Sort(draws)
	widen := metric.StudentT(freedom) / metric.StudentT(math.MaxInt) * math.Sqrt(float64(n)/float64(n-1))
	return interval{
		diff: diff,
		low:  diff + (draws[resamples*25/1000]-diff)*widen,
		high: diff + (draws[resamples*975/1000]-diff)*widen,
	}
}

// resample draws len(v) values with replacement, or returns v if pick is nil.
func resample(v []float64, pick func(int) int) []float64 {
	if pick == nil {
		return v
	}
	out := make([]float64, len(v))
	for i := range out {
		out[i] = v[pick(len(v))]
	}
	return out
}

// drawMean returns the mean of a resample of v.
func drawMean(v []float64, pick func(int) int) float64 {
	if pick == nil {
		return mean(v)
	}
	sum := 0.0
	for range v {
		sum += v[pick(len(v))]
	}
	return sum / float64(len(v))
}

// subtract returns x - y, element by element.
func subtract(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range out {
		out[i] = x[i] - y[i]
	}
	return out
}

// noiseFloor returns the noise between runs of one side, as a difference of logarithms. It splits the runs into two
// halves in every possible way and takes the 95th percentile of the differences between the halves, of the noisier
// side. Halves differ by the square root of 2 more than whole sides, so it divides by that. It skips a side with fewer
// than four runs, and returns false if both have fewer.
func noiseFloor(a, b runs) (float64, bool) {
	floor, ok := 0.0, false
	for _, side := range []runs{a, b} {
		if len(side) < 4 {
			continue
		}
		diffs := halves(side.typicalPerRun())
		slices.Sort(diffs)
		floor, ok = max(floor, diffs[(len(diffs)-1)*95/100]/math.Sqrt2), true
	}
	return floor, ok
}

// maxSplitRuns bounds the work of noiseFloor: further runs are ignored.
const maxSplitRuns = 12

// halves returns the difference between the means of the halves of v for each way to split it.
func halves(v []float64) []float64 {
	v = v[:min(len(v), maxSplitRuns)]
	var out []float64
	for chosen := range 1 << len(v) {
		var in, rest []float64
		for i, x := range v {
			if chosen>>i&1 == 1 {
				in = append(in, x)
			} else {
				rest = append(rest, x)
			}
		}
		if len(in) == len(v)/2 {
			out = append(out, math.Abs(mean(in)-mean(rest)))
		}
	}
	return out
}
