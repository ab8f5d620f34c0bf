package metric

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Buckets is a histogram that an engine reports with its own bucket bounds. Count and Sum accumulate whatever the
// bounds are; bucket counts are added only while the bounds stay the same. The zero value is empty.
type Buckets struct {
	Count  uint64
	Sum    int64    // ns
	bounds []int64  // upper bounds in ns, ascending; shared, never modified
	counts []uint64 // one more than bounds
	mixed  bool     // values with other or unknown bounds were added: no quantile can be computed
}

// Add adds a histogram that an engine reported. Bounds that do not fit the counts are ignored.
func (b *Buckets) Add(t *event.Histogram) {
	if t.Count == 0 {
		return
	}
	first := b.Count == 0
	if first {
		b.reset()
	}
	b.Count, b.Sum = event.AddCount(b.Count, t.Count), event.Add(b.Sum, t.Sum)
	if len(t.Bounds) == 0 || len(t.Counts) != len(t.Bounds)+1 || !first && !same(b.bounds, t.Bounds) {
		b.mixed = true
		return
	}
	if first {
		b.bounds, b.counts = t.Bounds, append(b.counts, make([]uint64, len(t.Counts))...)
	}
	for i, n := range t.Counts {
		b.counts[i] = event.AddCount(b.counts[i], n)
	}
}

// same reports whether two bounds are equal. Usually both are the same slice, which it checks first.
func same(a, b []int64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// Counts returns the counts per bucket, one more than the bounds; nil without values or with unknown bounds. They must
// not be changed.
func (b *Buckets) Counts() []uint64 {
	if b.Count == 0 || b.mixed {
		return nil
	}
	return b.counts
}

// reset empties b and keeps its memory.
func (b *Buckets) reset() {
	*b = Buckets{counts: b.counts[:0]}
}

// Edge says where in the buckets a quantile lies.
type Edge uint8

// The edges.
const (
	NoQuantile Edge = iota // no values, or unknown buckets
	Within                 // inside a bucket with two bounds: interpolated
	Below                  // in the first bucket: at most At
	Above                  // in the last bucket, which has no upper bound: more than At
	Exact                  // of measured values, which are in no bucket
)

// Quantile is a quantile with the precision that the buckets allow: it is above Low, except Below and Exact, and at most
// High.
type Quantile struct {
	At        int64 // ns
	Edge      Edge
	Low, High int64 // ns, the bounds of its bucket: 0 Below, math.MaxInt64 Above; At if Exact
}

// Quantile returns the duration that a share q of all values does not exceed. Inside a bucket it interpolates linearly,
// as Prometheus does. The first bucket may hold anything from 0 on and the last one has no upper bound, so there it
// returns only the bound.
func (b *Buckets) Quantile(q float64) Quantile {
	counts := b.Counts()
	return quantile(b.bounds, counts, total(counts), q)
}

// total returns the sum of counts.
func total(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum = event.AddCount(sum, n)
	}
	return sum
}

// quantile is Buckets.Quantile; all is the total of the counts.
func quantile(bounds []int64, counts []uint64, all uint64, q float64) Quantile {
	if all == 0 {
		return Quantile{}
	}
	rank, below := q*float64(all), uint64(0)
	for i, n := range counts {
		if float64(below)+float64(n) < rank || n == 0 {
			below = event.AddCount(below, n)
			continue
		}
		switch {
		case i == 0:
			return Quantile{bounds[0], Below, 0, bounds[0]}
		case i == len(bounds):
			return above(bounds)
		}
		low, high := bounds[i-1], bounds[i]
		return Quantile{low + int64(float64(high-low)*(rank-float64(below))/float64(n)), Within, low, high}
	}
	return above(bounds)
}

// above returns a quantile in the last bucket.
func above(bounds []int64) Quantile {
	last := bounds[len(bounds)-1]
	return Quantile{last, Above, last, math.MaxInt64}
}

// Over reports whether the quantile is above a limit in ns, wherever in its bucket it lies.
func (q Quantile) Over(limit int64) bool {
	return (q.Edge == Within || q.Edge == Above) && q.Low >= limit || q.Edge == Exact && q.At > limit
}

// AtMost reports whether the quantile is at most a limit in ns, wherever in its bucket it lies.
func (q Quantile) AtMost(limit int64) bool { return q.Edge != NoQuantile && q.High <= limit }

// Distribution describes durations: those that were measured, with Exact percentiles, or those that an engine counted in
// buckets, with percentiles no finer than these. Count 0 means no values.
type Distribution struct {
	Origin             event.Origin // Derived or Reported; without values why there are none
	Count              uint64
	Mean               float64 // ns, exact
	P50, P90, P95, P99 Quantile
	Max                Quantile // NoQuantile: not reported
}

// Distribution returns the distribution of measured values.
func (s *Summary) Distribution() Distribution {
	if s.Count == 0 {
		return Distribution{Origin: event.NotYet}
	}
	exact := func(ns int64) Quantile { return Quantile{ns, Exact, ns, ns} }
	return Distribution{
		Origin: event.Derived, Count: s.Count, Mean: s.Mean,
		P50: exact(s.P50), P90: exact(s.P90), P95: exact(s.P95), P99: exact(s.P99), Max: exact(s.Max),
	}
}

// Summary computes mean and percentiles.
func (b *Buckets) Summary() Distribution { return summarise(b.Count, b.Sum, b.bounds, b.Counts()) }

// summarise describes count durations; counts is nil if their buckets are unknown.
func summarise(count uint64, sum int64, bounds []int64, counts []uint64) Distribution {
	if count == 0 {
		return Distribution{Origin: event.NotYet}
	}
	all := total(counts)
	return Distribution{
		Origin: event.Reported, Count: count, Mean: float64(sum) / float64(count),
		P50: quantile(bounds, counts, all, 0.5), P90: quantile(bounds, counts, all, 0.9),
		P95: quantile(bounds, counts, all, 0.95), P99: quantile(bounds, counts, all, 0.99),
	}
}

// Range formats the bounds of the quantile's bucket: "between 100 ms and 250 ms", "<10 ms" in the first one.
func (q Quantile) Range() string {
	if q.Edge == Within {
		return "between " + Duration(q.Low) + " and " + Duration(q.High)
	}
	return QuantileOf(q)
}

// QuantileOf formats a quantile: "<10 ms" in the first bucket, ">80 s" in the last one, "-" without a quantile.
func QuantileOf(q Quantile) string {
	switch q.Edge {
	case Below:
		return "<" + Duration(q.At)
	case Above:
		return ">" + Duration(q.At)
	case Within, Exact:
		return Duration(q.At)
	}
	return "-"
}
