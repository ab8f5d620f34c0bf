package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// interval is a difference of logarithms with its 95 % interval.
type interval struct {
	diff, low, high float64
	few             bool // there are too few samples for an interval
}

const (
	resamples = 2000
	// fewestRuns is how many runs a side needs for its runs to be resampled. With fewer, their requests are, and what runs differ by
	// among themselves is not in the interval.
	fewestRuns = 3
	// fewestRequests is how many requests of one prompt, or how many prompts, can be resampled.
	fewestRequests = 5
)

// estimate is the difference between two sides by a bootstrap: of runs where there are enough of them, since requests of one run have more
// in common than requests of two; or else of requests.
func estimate(a, b runs, o Options) interval {
	rng := rand.New(rand.NewPCG(o.Seed, 0x6c6c6d746f70))
	switch {
	case min(len(a), len(b)) < fewestRuns:
		return byRequest(a.pooled(), b.pooled(), rng)
	case o.Interleaved && len(a) == len(b):
		pairs := less(b.each(), a.each())
		return bootstrap(len(pairs)-1, len(pairs), func(pick func(int) int) float64 { return drawMean(pairs, pick) }, rng)
	default:
		x, y := a.each(), b.each()
		return bootstrap(len(x)+len(y)-2, min(len(x), len(y)), func(pick func(int) int) float64 {
			return drawMean(y, pick) - drawMean(x, pick)
		}, rng)
	}
}

// byRequest resamples the requests of each prompt; where prompts have too few requests for that, it resamples prompts, each of which is a
// pair.
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
	case fewest >= fewestRequests:
		return bootstrap(2*total-2, total, func(pick func(int) int) float64 {
			sum := 0.0
			for _, key := range keys {
				sum += median(resample(b[key], pick)) - median(resample(a[key], pick))
			}
			return sum / float64(len(keys))
		}, rng)
	case len(keys) >= fewestRequests:
		return bootstrap(len(pairs)-1, len(pairs), func(pick func(int) int) float64 { return drawMean(pairs, pick) }, rng)
	}
	diff := mean(pairs)
	return interval{diff: diff, low: math.Inf(-1), high: math.Inf(1), few: true}
}

// pooled puts all runs into one.
func (r runs) pooled() run {
	out := run{}
	for _, one := range r {
		for key, values := range one {
			out[key] = append(out[key], values...)
		}
	}
	return out
}

// bootstrap draws a statistic from resamples and takes the 95 % interval of its percentiles. The bootstrap of n samples is too narrow by the
// square root of (n-1)/n and takes the spread as known; both are made good by widening it about the estimate, as in Hesterberg, "What
// Teachers Should Know About the Bootstrap", section 3.2 (2014).
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

// resample draws as many values as there are, or takes them as they are if pick is nil.
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

// drawMean is the mean of a resample.
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

// less is x - y, one by one.
func less(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range out {
		out[i] = x[i] - y[i]
	}
	return out
}

// noiseFloor is what a side differs by from itself: its runs are split into two halves in every possible way, and of the differences
// between the halves, in logarithms, the 95th percentile is taken; of the noisier side. Halves differ by the square root of 2 more than whole
// sides do, which is taken out. It is not known of fewer than four runs.
func noiseFloor(a, b runs) (float64, bool) {
	floor, ok := 0.0, false
	for _, side := range []runs{a, b} {
		if len(side) < 4 {
			continue
		}
		diffs := halves(side.each())
		slices.Sort(diffs)
		floor, ok = max(floor, diffs[(len(diffs)-1)*95/100]/math.Sqrt2), true
	}
	return floor, ok
}

// mostSplits bounds the work: beyond so many runs, those after are left out of the noise floor.
const mostSplits = 12

// halves is the difference between the means of the halves of v for each way to split it.
func halves(v []float64) []float64 {
	v = v[:min(len(v), mostSplits)]
	var out []float64
	for chosen := range 1 << len(v) {
		var in, out2 []float64
		for i, x := range v {
			if chosen>>i&1 == 1 {
				in = append(in, x)
			} else {
				out2 = append(out2, x)
			}
		}
		if len(in) == len(v)/2 {
			out = append(out, math.Abs(mean(in)-mean(out2)))
		}
	}
	return out
}
