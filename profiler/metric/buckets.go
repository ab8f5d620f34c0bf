package metric

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Buckets are durations that an engine has counted in buckets of its own. Count and sum add up whatever the buckets are; buckets are added only
// to the same ones, never to others. The zero value is empty.
type Buckets struct {
	Count  uint64
	Sum    int64    // ns
	bounds []int64  // never written
	counts []uint64 // one more than bounds
	mixed  bool     // something was added whose buckets are not these, or unknown: no quantile can be told
}

// Add adds what an engine has counted.
func (b *Buckets) Add(t *event.Times) {
	bounds := t.Bounds
	if len(t.Counts) != len(bounds)+1 {
		bounds = nil
	}
	b.merge(t.Count, t.Sum, bounds, t.Counts)
}

// merge adds durations by their buckets, as far as they are given. Bounds are shared.
func (b *Buckets) merge(count uint64, sum int64, bounds []int64, counts []uint64) {
	if count == 0 {
		return
	}
	first := b.Count == 0
	b.Count, b.Sum = b.Count+count, b.Sum+sum
	if len(bounds) == 0 || !first && !same(b.bounds, bounds) {
		b.mixed = true
		return
	}
	if first {
		b.bounds, b.counts = bounds, append(b.counts[:0], make([]uint64, len(bounds)+1)...)
	}
	for i, n := range counts {
		b.counts[i] += n
	}
}

// same reports whether bounds are the same, most of the time by looking where they are.
func same(a, b []int64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// reset empties b and keeps its memory.
func (b *Buckets) reset() {
	*b = Buckets{counts: b.counts[:0]}
}

// Edge says where in the buckets a quantile lies.
type Edge uint8

// The edges.
const (
	NoQuantile Edge = iota // nothing came, or the buckets are not known
	Within                 // between the bounds of a bucket, where it is interpolated
	Below                  // in the first bucket: less than At
	Above                  // in the last bucket, which has no end: more than At
)

// Quantile is a quantile as far as buckets can tell it.
type Quantile struct {
	At   int64 // ns
	Edge Edge
}

// Quantile is the time that a share q of all do not exceed. Within a bucket it is interpolated evenly, as Prometheus does; in the first one,
// which may hold anything from 0 on, and in the last one, which has no end, only the bound is known.
func (b *Buckets) Quantile(q float64) Quantile {
	total := uint64(0)
	for _, n := range b.counts {
		total += n
	}
	if b.mixed || total == 0 {
		return Quantile{}
	}
	rank, below := q*float64(total), uint64(0)
	for i, n := range b.counts {
		if float64(below+n) < rank || n == 0 {
			below += n
			continue
		}
		switch {
		case i == 0:
			return Quantile{b.bounds[0], Below}
		case i == len(b.bounds):
			return Quantile{b.bounds[i-1], Above}
		}
		low, high := float64(b.bounds[i-1]), float64(b.bounds[i])
		return Quantile{int64(low + (high-low)*(rank-float64(below))/float64(n)), Within}
	}
	return Quantile{b.bounds[len(b.bounds)-1], Above}
}

// BucketSummary describes durations that an engine has counted. Count 0 means that none came.
type BucketSummary struct {
	Count              uint64
	Mean               float64 // ns, exact
	P50, P90, P95, P99 Quantile
}

// Summary describes the durations.
func (b *Buckets) Summary() (s BucketSummary) {
	if b.Count == 0 {
		return s
	}
	return BucketSummary{
		Count: b.Count, Mean: float64(b.Sum) / float64(b.Count),
		P50: b.Quantile(0.5), P90: b.Quantile(0.9), P95: b.Quantile(0.95), P99: b.Quantile(0.99),
	}
}

// QuantileOf writes a quantile: "<10 ms" in the first bucket, ">80 s" in the last one, "-" where none is known.
func QuantileOf(q Quantile) string {
	switch q.Edge {
	case Below:
		return "<" + Duration(q.At)
	case Above:
		return ">" + Duration(q.At)
	case Within:
		return Duration(q.At)
	}
	return "-"
}
