package metric

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// values draws values of all magnitudes.
func values(rt *rapid.T, name string) []int64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1e10)), 0, 50).Draw(rt, name)
}

var whole = cmp.AllowUnexported(Histogram{}, bucketCount{})

// TestSince checks that Since describes what was recorded after a copy, to the width of a bucket, and that the copy stays
// as it was.
func TestSince(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all, early, later Histogram
		for _, v := range values(rt, "before") {
			all.Record(v, 1)
			early.Record(v, 1)
		}
		then := all.Clone()
		for _, v := range values(rt, "after") {
			all.Record(v, 2)
			later.Record(v, 2)
		}
		if d := cmp.Diff(&early, then, whole); d != "" {
			rt.Fatalf("the copy changed: %s", d)
		}
		got, want := all.Since(then).Summary(), later.Summary()
		if got.Count != want.Count {
			rt.Fatalf("%d values came since, want %d", got.Count, want.Count)
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > want/32+1 {
				rt.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		near("p50", float64(got.P50), float64(want.P50))
		near("p99", float64(got.P99), float64(want.P99))
		near("mean", got.Mean, want.Mean)
		near("max", float64(got.Max), float64(want.Max))
		near("min", float64(got.Min), float64(want.Min))
	})
}

func TestSinceAfterRestart(t *testing.T) {
	var old, young Histogram
	old.Record(5, 10)
	young.Record(7, 3)
	if d := cmp.Diff(&young, young.Since(&old), whole); d != "" {
		t.Errorf("not all of it: %s", d)
	}
}
