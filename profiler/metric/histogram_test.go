package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// samples draws times of all magnitudes below the last bucket.
func samples() *rapid.Generator[[]int64] {
	magnitude := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.Int64Range(0, 1<<rapid.IntRange(0, 46).Draw(t, "bits")-1).Draw(t, "v")
	})
	return rapid.SliceOfN(magnitude, 1, 400)
}

func recorded(values []int64) *Histogram {
	var h Histogram
	for _, v := range values {
		h.Record(v, 1)
	}
	return &h
}

// rank returns the percentile p of sorted values by nearest rank: the smallest value that at least p % do not exceed.
func rank(sorted []int64, p int) int64 { return sorted[(p*len(sorted)+99)/100-1] }

func TestPercentilesAreWithinTheErrorBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := samples().Draw(rt, "values")
		got := recorded(values).Summary()
		slices.Sort(values)
		for _, c := range []struct {
			p   int
			got int64
		}{{50, got.P50}, {90, got.P90}, {95, got.P95}, {99, got.P99}} {
			if want := rank(values, c.p); math.Abs(float64(c.got-want)) > float64(want)/64 {
				rt.Fatalf("p%d = %d, exact %d: off by more than 1/64", c.p, c.got, want)
			}
		}
		if got.Min != values[0] || got.Max != values[len(values)-1] || got.Count != uint64(len(values)) {
			rt.Fatalf("%+v, want %d values from %d to %d", got, len(values), values[0], values[len(values)-1])
		}
	})
}

func TestMomentsAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1e9), 2, 200).Draw(rt, "values")
		got := recorded(values).Summary()
		mean, square := 0.0, 0.0
		for _, v := range values {
			mean += float64(v) / float64(len(values))
		}
		for _, v := range values {
			square += (float64(v) - mean) * (float64(v) - mean)
		}
		deviation := math.Sqrt(square / float64(len(values)-1))
		if math.Abs(got.Mean-mean) > 1e-9*mean || math.Abs(got.StdDev-deviation) > 1e-3*deviation+mean*1e-6 {
			rt.Fatalf("mean %v, deviation %v; want %v and %v", got.Mean, got.StdDev, mean, deviation)
		}
	})
}

func TestMergeEqualsAllSamples(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one, two := samples().Draw(rt, "one"), samples().Draw(rt, "two")
		merged, together := recorded(one), recorded(slices.Concat(one, two))
		merged.Add(recorded(two))
		merged.Add(&Histogram{})
		got, want := merged.Summary(), together.Summary()
		// Floating-point sums depend on their order; everything else must be equal.
		if math.Abs(got.Mean-want.Mean) > 1e-9*want.Mean || math.Abs(got.StdDev-want.StdDev) > 1e-6*want.StdDev {
			rt.Fatalf("mean %v, deviation %v; want %v and %v", got.Mean, got.StdDev, want.Mean, want.StdDev)
		}
		got.Mean, got.StdDev = want.Mean, want.StdDev
		if got != want || !slices.Equal(merged.counts, together.counts) {
			rt.Fatalf("merged %+v, together %+v", got, want)
		}
	})
}

func TestWeightsEqualRepetitions(t *testing.T) {
	var weighted, repeated Histogram
	weighted.Record(700, 3)
	weighted.Record(9000, 2)
	weighted.Record(1<<60, 0) // nothing
	for _, v := range []int64{700, 700, 700, 9000, 9000} {
		repeated.Record(v, 1)
	}
	if !cmp.Equal(weighted, repeated, whole) {
		t.Errorf("%+v, want %+v", weighted.Summary(), repeated.Summary())
	}
}

func TestHistogramEdgeCases(t *testing.T) {
	var h Histogram
	if h.Summary() != (Summary{}) || h.Median() != 0 {
		t.Errorf("an empty histogram has %+v", h.Summary())
	}
	h.Record(-5, 1)
	h.Record(math.MaxInt64, 1)
	if s := h.Summary(); s.Min != 0 || s.P50 != 0 || s.Max != math.MaxInt64 || s.Count != 2 {
		t.Errorf("values out of range read %+v", s)
	}
	one := recorded([]int64{12_345_678}).Summary()
	if one.P50 != 12_345_678 || one.P99 != 12_345_678 || one.StdDev != 0 {
		t.Errorf("one value reads %+v, want itself", one)
	}
}

func TestBucketsCoverAllValuesOnce(t *testing.T) {
	for i := range numBuckets {
		if got := bucket(middle(i)); got != i {
			t.Fatalf("the middle of bucket %d, %d, lies in %d", i, middle(i), got)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Int64Range(0, math.MaxInt64-1).Draw(rt, "v")
		if bucket(v) > bucket(v+1) {
			rt.Fatalf("%d lies above %d", v, v+1)
		}
	})
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	v := int64(600_000)
	for b.Loop() {
		h.Record(v, 1)
		v = v*25/24 + 1
		if v > 1e9 {
			v = 600_000
		}
	}
}

func BenchmarkHistogramSummary(b *testing.B) {
	var h Histogram
	for i := range int64(10_000) {
		h.Record(600_000+i*100, 1)
	}
	for b.Loop() {
		h.Summary()
	}
}

// Distributions of one source rarely differ, a shift is found, and few values are inconclusive.
func TestDiffers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, factor float64) *Histogram {
		h := new(Histogram)
		for range n {
			h.Record(int64(1e6*factor*math.Exp(0.2*random.NormFloat64())), 1)
		}
		return h
	}
	count := func(before, since int, factor, q float64) (differ int) {
		for range 1000 {
			if draw(since, factor).Differs(q, uint64(since), draw(before, 1), uint64(before)) {
				differ++
			}
		}
		return differ
	}
	for _, c := range []struct {
		before, since int
		factor, q     float64
		least, most   int
	}{
		{30, 30, 1, .5, 0, 20},
		{1000, 200, 1, .5, 0, 20},
		{2000, 700, 1, .99, 0, 20},
		{30, 30, 1.5, .5, 950, 1000},
		{1000, 200, 1.2, .5, 990, 1000},
		{2000, 700, 1.5, .99, 950, 1000},
		{30, 6, 9, .5, 0, 0},
		{30, 7, 9, .5, 950, 1000},
		{2000, 600, 9, .99, 0, 0},
	} {
		if n := count(c.before, c.since, c.factor, c.q); n < c.least || n > c.most {
			t.Errorf("quantile %v of %d and of %d values, %v times as large: %d of 1000 differ, want %d to %d", c.q, c.before, c.since, c.factor, n, c.least, c.most)
		}
	}
	many, few := draw(1000, 2), draw(1000, 1)
	if many.Differs(.5, 1000, few, 6) {
		t.Error("gaps of six requests differ")
	}
}
