package metric

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestQuantilesOfBuckets(t *testing.T) {
	const ms = int64(time.Millisecond)
	times := event.Histogram{Count: 10, Sum: 100 * ms, Bounds: []int64{10 * ms, 20 * ms, 40 * ms}, Counts: []uint64{4, 4, 1, 1}}
	var b Buckets
	b.Add(&times)
	for q, want := range map[float64]string{0.1: "<10.0 ms", 0.4: "<10.0 ms", 0.5: "12.5 ms", 0.8: "20.0 ms", 0.9: "40.0 ms", 0.95: ">40.0 ms", 1: ">40.0 ms"} {
		if got := QuantileOf(b.Quantile(q)); got != want {
			t.Errorf("p%v is %s, want %s", 100*q, got, want)
		}
	}
	if s := b.Summary(); s.Count != 10 || s.Mean != float64(10*ms) {
		t.Errorf("%+v", s)
	}
	var none Buckets
	if s := none.Summary(); s != (Distribution{Origin: event.NotYet}) || QuantileOf(s.P50) != "-" {
		t.Errorf("empty: %+v", s)
	}
}

func TestDifferentBucketsAreNotMerged(t *testing.T) {
	for name, other := range map[string]event.Histogram{
		"other bounds": {Count: 2, Sum: 8, Bounds: []int64{2}, Counts: []uint64{1, 1}},
		"none":         {Count: 2, Sum: 8},
		"too few":      {Count: 2, Sum: 8, Bounds: []int64{1}, Counts: []uint64{1}},
	} {
		var b Buckets
		b.Add(&event.Histogram{Count: 2, Sum: 2, Bounds: []int64{1}, Counts: []uint64{1, 1}})
		b.Add(&other)
		if s := b.Summary(); s.Count != 4 || s.Mean != 2.5 || s.P50.Edge != NoQuantile {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func summaries(w *WindowedBuckets, now int64) (out [NumWindows]Distribution) {
	v := w.View(now)
	for i := range NumWindows {
		out[i] = v.Summary(i)
	}
	return out
}

func TestWindowsOfBuckets(t *testing.T) {
	var w WindowedBuckets
	const sec = int64(time.Second)
	for s := int64(1); s <= 100; s++ {
		w.Add(s*sec, sec, &event.Histogram{Count: 1, Sum: s, Bounds: []int64{5}, Counts: []uint64{1, 0}})
	}
	out := summaries(&w, 100*sec+sec/2)
	if out[Second].Count != 1 || out[Second].Mean != 100 || out[TenSeconds].Count != 10 || out[Minute].Count != 60 || out[Session].Count != 100 {
		t.Errorf("%+v", out)
	}
	out = summaries(&w, 105*sec)
	if out[Second].Count != 0 || out[TenSeconds].Count != 5 || out[TenSeconds].Mean != 98 || out[Session].Count != 100 {
		t.Errorf("five seconds later %+v", out)
	}
}

// TestQuantilesLieInTheirBucket checks quantiles against the counted values: each lies where its Edge says.
func TestQuantilesLieInTheirBucket(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bounds := []int64{10, 20, 50, 100}
		times := event.Histogram{Bounds: bounds, Counts: make([]uint64, 5)}
		values := rapid.SliceOfN(rapid.Int64Range(0, 150), 1, 50).Draw(r, "values")
		for _, v := range values {
			i := 0
			for i < len(bounds) && v > bounds[i] {
				i++
			}
			times.Counts[i]++
			times.Count++
			times.Sum += v
		}
		var b Buckets
		b.Add(&times)
		q := rapid.Float64Range(0.01, 1).Draw(r, "q")
		got := b.Quantile(q)
		slices.Sort(values)
		v, in := values[max(int(math.Ceil(q*float64(len(values))-1e-9)), 1)-1], 0
		for in < len(bounds) && v > bounds[in] {
			in++
		}
		ok := false
		switch in {
		case 0:
			ok = got == Quantile{bounds[0], Below, 0, bounds[0]}
		case len(bounds):
			ok = got == Quantile{bounds[in-1], Above, bounds[in-1], math.MaxInt64}
		default:
			ok = got.Edge == Within && got.At >= got.Low && got.At <= got.High && got.Low == bounds[in-1] && got.High == bounds[in]
		}
		if !ok {
			r.Fatalf("p%v is %s, and it is %d", 100*q, QuantileOf(got), v)
		}
		limit := rapid.Int64Range(0, 150).Draw(r, "limit")
		if got.Over(limit) && v <= limit || got.AtMost(limit) && v > limit {
			r.Fatalf("p%v is %s, which is judged wrongly by the limit %d", 100*q, got.Range(), limit)
		}
	})
}
