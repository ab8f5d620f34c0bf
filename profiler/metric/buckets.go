package metric

import (
	"slices"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// Buckets are durations that an engine has counted in buckets of its own. Count and sum add up whatever the buckets are; buckets are added only
// to the same ones, never to others. The zero value is empty.
type Buckets struct {
	Count  uint64
	Sum    int64 // ns
	bounds []int64
	counts []uint64 // one more than bounds
	mixed  bool     // something was added whose buckets are not these, or unknown: no quantile can be told
}

// Add adds what an engine has counted.
func (b *Buckets) Add(t *event.Times) {
	if t.Count > 0 {
		b.merge(t.Count, t.Sum, t.Bounds, t.Counts)
	}
}

func (b *Buckets) merge(count uint64, sum int64, bounds []int64, counts []uint64) {
	first := b.Count == 0
	b.Count, b.Sum = b.Count+count, b.Sum+sum
	switch {
	case len(counts) != len(bounds)+1 || len(bounds) == 0, !first && !slices.Equal(b.bounds, bounds):
		b.mixed = true
	case first:
		b.bounds = append(b.bounds[:0], bounds...)
		b.counts = append(b.counts[:0], counts...)
	default:
		for i, n := range counts {
			b.counts[i] += n
		}
	}
}

// reset empties b and keeps its memory.
func (b *Buckets) reset() {
	*b = Buckets{bounds: b.bounds[:0], counts: b.counts[:0]}
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

// WindowedBuckets are Buckets over every Window. The zero value is empty.
type WindowedBuckets struct {
	past    [slots + 1]secondOf // of second s at s % len(past)
	session Buckets
}

// secondOf is what came within one second.
type secondOf struct {
	second int64
	Buckets
}

// Add adds what was told at a time in ns.
func (w *WindowedBuckets) Add(now int64, t *event.Times) {
	if t.Count == 0 {
		return
	}
	s := max(now/int64(time.Second), 1)
	p := &w.past[s%int64(len(w.past))]
	if p.second != s {
		p.second = s
		p.reset()
	}
	p.Add(t)
	w.session.Add(t)
}

// Clone is a copy that shares nothing.
func (w *WindowedBuckets) Clone() *WindowedBuckets {
	c := *w
	for i := range c.past {
		c.past[i].own()
	}
	c.session.own()
	return &c
}

func (b *Buckets) own() { b.bounds, b.counts = slices.Clone(b.bounds), slices.Clone(b.counts) }

// Session is the histogram of the whole session: the upper ends of its buckets in ns, which must not be changed, and a copy of the counts of each, one
// more. Nil if the buckets are not known, or were not always the same.
func (w *WindowedBuckets) Session() (bounds []int64, counts []uint64) {
	if b := &w.session; !b.mixed && b.Count > 0 {
		return b.bounds, slices.Clone(b.counts)
	}
	return nil, nil
}

// Size is the memory that w takes, in bytes.
func (w *WindowedBuckets) Size() int {
	n := int(unsafe.Sizeof(*w))
	for i := range w.past {
		n += 16 * cap(w.past[i].counts)
	}
	return n
}

// Summaries describes the durations over every window ending now. "last 1 s" is what was told last, within the current second or the one before.
func (w *WindowedBuckets) Summaries(now int64) (out [NumWindows]BucketSummary) {
	s := now / int64(time.Second)
	for window, n := range [...]int64{Second: 2, TenSeconds: 10, Minute: 60} {
		var sum Buckets
		for i := range w.past {
			if p := &w.past[i]; p.Count > 0 && p.second > s-n && p.second <= s {
				if Window(window) == Second && sum.Count > 0 {
					if p.second == s {
						sum = p.Buckets
					}
					continue
				}
				sum.fold(&p.Buckets)
			}
		}
		out[window] = sum.Summary()
	}
	out[Session] = w.session.Summary()
	return out
}

// fold adds other buckets.
func (b *Buckets) fold(o *Buckets) {
	counts := o.counts
	if o.mixed {
		counts = nil
	}
	b.merge(o.Count, o.Sum, o.bounds, counts)
}
