package metric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// values draws values of all magnitudes.
func values(rt *rapid.T, name string) []int64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1e10)), 0, 50).Draw(rt, name)
}

// Unpacking restores a packed histogram, and Since describes what was recorded after it, to the width of a bucket.
func TestPackedSince(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all, later Histogram
		for _, v := range values(rt, "before") {
			all.Record(v, 1)
		}
		then := all.Pack()
		if all != then.Unpack() {
			rt.Fatal("unpacking does not restore the histogram")
		}
		for _, v := range values(rt, "after") {
			all.Record(v, 2)
			later.Record(v, 2)
		}
		since := all.Pack().Since(then)
		got, want := since.Summary(), later.Summary()
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
	if got := young.Pack().Since(old.Pack()); got != young {
		t.Errorf("got %+v, want all of it", got)
	}
}
