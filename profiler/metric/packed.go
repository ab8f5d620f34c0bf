package metric

import (
	"math"
	"slices"
)

// Packed is an immutable Histogram without its empty buckets, for storage: 8 bytes per used bucket, typically a few
// dozen. nil is empty.
type Packed struct {
	counts   []packedCount
	n        uint64
	sum, sq  float64
	min, max int64
}

type packedCount struct{ bucket, n uint32 }

// Equal reports whether p and q hold the same distribution.
func (p *Packed) Equal(q *Packed) bool {
	if p == nil || q == nil {
		return p == q
	}
	return slices.Equal(p.counts, q.counts) && p.n == q.n && p.sum == q.sum && p.sq == q.sq && p.min == q.min && p.max == q.max
}

// Pack returns a copy of the distribution, nil if it is empty.
func (h *Histogram) Pack() *Packed {
	if h.n == 0 {
		return nil
	}
	full := 0
	for _, c := range h.counts {
		if c != 0 {
			full++
		}
	}
	p := &Packed{counts: make([]packedCount, 0, full), n: h.n, sum: h.sum, sq: h.sq, min: h.min, max: h.max}
	for i, c := range h.counts {
		if c != 0 {
			p.counts = append(p.counts, packedCount{uint32(i), c})
		}
	}
	return p
}

// Unpack returns the distribution as a Histogram.
func (p *Packed) Unpack() (h Histogram) {
	h.addPacked(p)
	return h
}

// addPacked is like Add.
func (h *Histogram) addPacked(p *Packed) {
	if p == nil {
		return
	}
	if h.n == 0 || p.min < h.min {
		h.min = p.min
	}
	h.max = max(h.max, p.max)
	for _, c := range p.counts {
		h.counts[c.bucket] += c.n
	}
	h.n, h.sum, h.sq = h.n+p.n, h.sum+p.sum, h.sq+p.sq
}

// Count returns the number of recorded values.
func (p *Packed) Count() uint64 {
	if p == nil {
		return 0
	}
	return p.n
}

// Summary computes mean, deviation and percentiles.
func (p *Packed) Summary() Summary {
	if p == nil {
		return Summary{}
	}
	s := moments(p.n, p.sum, p.sq, p.min, p.max)
	p.quantiles(summarised, []*int64{&s.P50, &s.P90, &s.P95, &s.P99})
	return s
}

func (p *Packed) quantiles(qs []float64, out []*int64) {
	r := ranks{qs: qs, out: out, n: p.n, least: p.min, top: p.max}
	for _, c := range p.counts {
		if r.pass(int(c.bucket), c.n) {
			return
		}
	}
}

// Since returns the values recorded after then, an earlier state of the same distribution. It subtracts the counts;
// the smallest and largest value are exact to the width of a bucket. If then counts more than p, it is not an earlier
// state and is ignored.
func (p *Packed) Since(then *Packed) (h Histogram) {
	h = p.Unpack()
	if then.Count() == 0 || then.Count() > p.Count() {
		return h
	}
	old := then.Unpack()
	if h.n -= old.n; h.n == 0 {
		return Histogram{}
	}
	h.sum, h.sq = max(h.sum-old.sum, 0), max(h.sq-old.sq, 0)
	least, most := int64(math.MaxInt64), int64(0)
	for i := range h.counts {
		h.counts[i] -= min(old.counts[i], h.counts[i])
		if h.counts[i] != 0 {
			least, most = min(least, middle(i)), max(most, middle(i))
		}
	}
	h.min, h.max = max(h.min, min(least, h.max)), min(h.max, max(most, h.min))
	return h
}
