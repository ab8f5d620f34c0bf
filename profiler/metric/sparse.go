package metric

import (
	"cmp"
	"slices"
)

// Sparse is a Histogram without its empty buckets, for distributions of which there are thousands: 8 bytes for each bucket that holds a
// value, of which the gaps of one request fill some dozens, at most 10.7 KB. Its percentiles are those of a Histogram. The zero value is empty.
type Sparse struct{ kept Packed }

// Record counts a value k times; negative values count as 0.
func (s *Sparse) Record(v int64, k uint32) {
	if k == 0 {
		return
	}
	v = max(v, 0)
	p := &s.kept
	if p.n == 0 || v < p.min {
		p.min = v
	}
	p.max = max(p.max, v)
	in := uint32(bucket(v))
	i, found := slices.BinarySearchFunc(p.counts, in, func(c packedCount, in uint32) int { return cmp.Compare(c.bucket, in) })
	if !found {
		p.counts = slices.Insert(p.counts, i, packedCount{bucket: in})
	}
	p.counts[i].n += k
	p.n += uint64(k)
	p.sum += float64(v) * float64(k)
	p.sq += float64(v) * float64(v) * float64(k)
}

// Count is the number of values recorded.
func (s *Sparse) Count() uint64 { return s.kept.n }

// Median is the 50th percentile, 0 if nothing was recorded.
func (s *Sparse) Median() (median int64) {
	if s.kept.n > 0 {
		s.kept.quantiles([]float64{.5}, []*int64{&median})
	}
	return median
}

// Summary describes the distribution.
func (s *Sparse) Summary() Summary { return s.kept.Summary() }

// Pack is the distribution as it stands, nil if nothing was recorded.
func (s *Sparse) Pack() *Packed {
	if s.kept.n == 0 {
		return nil
	}
	p := s.kept
	p.counts = slices.Clone(p.counts)
	return &p
}

// Sparse is the distribution that was packed, to go on from.
func (p *Packed) Sparse() *Sparse {
	if p == nil {
		return new(Sparse)
	}
	s := &Sparse{*p}
	s.kept.counts = slices.Clone(p.counts)
	return s
}
