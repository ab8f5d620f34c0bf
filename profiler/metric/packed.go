package metric

import (
	"math"
	"slices"
)

// Packed is a Histogram that is kept, without its empty buckets: 8 bytes for each of the others, of which a stretch of even work has some
// dozens. It is never written again. The nil value is empty.
type Packed struct {
	counts   []packedCount
	n        uint64
	sum, sq  float64
	min, max int64
}

type packedCount struct{ bucket, n uint32 }

// Equal reports whether both stand for the same distribution.
func (p *Packed) Equal(q *Packed) bool {
	if p == nil || q == nil {
		return p == q
	}
	return slices.Equal(p.counts, q.counts) && p.n == q.n && p.sum == q.sum && p.sq == q.sq && p.min == q.min && p.max == q.max
}

// Pack is the distribution as it stands, nil if nothing was recorded.
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

// Unpack is the distribution that was packed.
func (p *Packed) Unpack() (h Histogram) {
	if p == nil {
		return h
	}
	for _, c := range p.counts {
		h.counts[c.bucket] = c.n
	}
	h.n, h.sum, h.sq, h.min, h.max = p.n, p.sum, p.sq, p.min, p.max
	return h
}

// Count is the number of values recorded.
func (p *Packed) Count() uint64 {
	if p == nil {
		return 0
	}
	return p.n
}

// Size is about how many bytes it takes.
func (p *Packed) Size() int {
	if p == nil {
		return 0
	}
	return 64 + 8*len(p.counts)
}

// Summary describes the distribution.
func (p *Packed) Summary() Summary {
	h := p.Unpack()
	return h.Summary()
}

// Since describes what was recorded after then, an earlier state of the same distribution: the difference of the counts, which is exact up to
// the width of the buckets. So are its least and its largest value. What is not an earlier state, since it counts more, is left out of account.
func (p *Packed) Since(then *Packed) Summary {
	if then.Count() == 0 || then.Count() > p.Count() {
		return p.Summary()
	}
	h, old := p.Unpack(), then.Unpack()
	if h.n -= old.n; h.n == 0 {
		return Summary{}
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
	return h.Summary()
}
