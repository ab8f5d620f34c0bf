package metric

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSparseAgreesWithHistogram checks that a sparse histogram equals a full one of the same values, also after it was
// packed.
func TestSparseAgreesWithHistogram(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var full Histogram
		sparse := new(Sparse)
		record := func(name string) {
			for _, v := range append(values(rt, name), rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(rt, "any "+name)...) {
				k := rapid.Uint32Range(0, 3).Draw(rt, "times")
				full.Record(v, k)
				sparse.Record(v, k)
			}
		}
		record("before")
		packed := sparse.Pack()
		if !packed.Equal(full.Pack()) {
			rt.Fatalf("packed %+v, want %+v", packed, full.Pack())
		}
		then := packed.Summary()
		sparse = packed.Sparse()
		record("after")
		if sparse.Summary() != full.Summary() || sparse.Median() != full.Median() || sparse.Count() != full.Count() {
			rt.Fatalf("%+v, want %+v", sparse.Summary(), full.Summary())
		}
		if packed.Summary() != then {
			rt.Fatal("what was packed has changed")
		}
	})
}

func BenchmarkSparse(b *testing.B) {
	s := new(Sparse)
	for i := range int64(1000) {
		s.Record(20e6+i*i*7, 1)
	}
	b.Run("Record", func(b *testing.B) {
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			s.Record(20e6+i%1000*1000, 1)
		}
	})
	b.Run("Median", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Median()
		}
	})
	b.Run("Summary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Summary()
		}
	})
}
