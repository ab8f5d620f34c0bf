package metric

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Buckets of a Histogram: each value below 2*subBuckets has its own bucket; each octave above is divided into
// subBuckets. So a bucket is at most 1/32 of its value wide, and its middle is off by at most 1/64.
const (
	subBits    = 5
	subBuckets = 1 << subBits
	octaves    = 40
	numBuckets = subBuckets * (octaves + 2) // up to 2^46 ns, 19.5 hours; larger values go into the last bucket
)

// Histogram is a log-linear histogram of times in ns: 8 bytes for each bucket that holds a value, typically a few dozen,
// at most 10.7 KB. Merging is exact: combine windows and sources with Add, never by averaging percentiles. The zero value
// is empty, and so is nil to readers.
type Histogram struct {
	counts   []bucketCount // ascending by bucket
	n        uint64
	sum, sq  float64
	min, max int64
}

type bucketCount struct{ bucket, n uint32 }

// bucket returns the index of the bucket of v.
func bucket(v int64) int {
	if v < 2*subBuckets {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 1 - subBits
	return min(e*subBuckets+int(v>>e), numBuckets-1)
}

// middle returns the value that represents bucket i.
func middle(i int) int64 {
	if i < 2*subBuckets {
		return int64(i)
	}
	e := i/subBuckets - 1
	return int64(i-e*subBuckets)<<e + int64(1)<<e/2
}

// Record counts v k times. Negative values count as 0.
func (h *Histogram) Record(v int64, k uint32) {
	if k == 0 {
		return
	}
	v = max(v, 0)
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	in := uint32(bucket(v))
	i, found := slices.BinarySearchFunc(h.counts, in, func(c bucketCount, in uint32) int { return cmp.Compare(c.bucket, in) })
	if !found {
		h.counts = slices.Insert(h.counts, i, bucketCount{bucket: in})
	}
	h.counts[i].n += k
	h.n += uint64(k)
	h.sum += float64(v) * float64(k)
	h.sq += float64(v) * float64(v) * float64(k)
}

// Add merges o into h.
func (h *Histogram) Add(o *Histogram) {
	if o.Count() == 0 {
		return
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	i := 0
	for _, c := range o.counts {
		for i < len(h.counts) && h.counts[i].bucket < c.bucket {
			i++
		}
		if i == len(h.counts) || h.counts[i].bucket > c.bucket {
			h.counts = slices.Insert(h.counts, i, bucketCount{bucket: c.bucket})
		}
		h.counts[i].n += c.n
	}
	h.n, h.sum, h.sq = h.n+o.n, h.sum+o.sum, h.sq+o.sq
}

// set makes h a copy of o, in the memory that h has.
func (h *Histogram) set(o *Histogram) {
	counts := append(h.counts[:0], o.counts...)
	*h = *o
	h.counts = counts
}

// reset empties h and keeps its memory.
func (h *Histogram) reset() { *h = Histogram{counts: h.counts[:0]} }

// Clone returns a copy that shares nothing.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.counts = slices.Clone(h.counts)
	return &c
}

// Count returns the number of recorded values.
func (h *Histogram) Count() uint64 {
	if h == nil {
		return 0
	}
	return h.n
}

// Since returns the values recorded after then, an earlier state of the same distribution. It subtracts the counts;
// the smallest and largest value are exact to the width of a bucket. If then counts more than h, it is not an earlier
// state and is ignored.
func (h *Histogram) Since(then *Histogram) *Histogram {
	if then.Count() == 0 || then.Count() > h.Count() {
		return h
	}
	since := &Histogram{n: h.n - then.n, sum: max(h.sum-then.sum, 0), sq: max(h.sq-then.sq, 0)}
	if since.n == 0 {
		return nil
	}
	old := then.counts
	for _, c := range h.counts {
		for len(old) > 0 && old[0].bucket < c.bucket {
			old = old[1:]
		}
		if len(old) > 0 && old[0].bucket == c.bucket {
			c.n -= min(old[0].n, c.n)
		}
		if c.n > 0 {
			since.counts = append(since.counts, c)
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	if n := len(since.counts); n > 0 {
		least, most = middle(int(since.counts[0].bucket)), middle(int(since.counts[n-1].bucket))
	}
	since.min, since.max = max(h.min, min(least, h.max)), min(h.max, max(most, h.min))
	return since
}

// Summary computes mean, deviation and percentiles.
func (h *Histogram) Summary() Summary {
	if h.Count() == 0 {
		return Summary{}
	}
	s := Summary{Count: h.n, Mean: h.sum / float64(h.n), Min: h.min, Max: h.max}
	if h.n > 1 {
		s.StdDev = math.Sqrt(max(0, (h.sq-h.sum*s.Mean)/float64(h.n-1)))
	}
	h.quantiles(summarised, []*int64{&s.P50, &s.P90, &s.P95, &s.P99})
	return s
}

// summarised are the quantiles of a Summary.
var summarised = []float64{.5, .9, .95, .99}

// quantiles writes the values at some quantiles to out, in one walk over the buckets: each the value at rank ceil(q*n), as
// the nearest-rank definition has it. qs must ascend.
func (h *Histogram) quantiles(qs []float64, out []*int64) {
	seen := uint64(0)
	for _, c := range h.counts {
		seen += uint64(c.n)
		for len(qs) > 0 && seen >= uint64(math.Ceil(qs[0]*float64(h.n))) {
			*out[0] = min(max(middle(int(c.bucket)), h.min), h.max)
			qs, out = qs[1:], out[1:]
		}
		if len(qs) == 0 {
			return
		}
	}
}

// bounds returns the values between which quantile q lies with 99 % probability, by the binomial distribution of ranks, if n
// of the values are independent: the gaps of one request are not. It returns false if there are too few for that.
func (h *Histogram) bounds(q float64, n uint64) (low, high int64, ok bool) {
	const z = 2.576
	spread := z * math.Sqrt(q*(1-q)/float64(n))
	if h.Count() == 0 || n == 0 || q-spread <= 0 || q+spread >= 1 {
		return 0, 0, false
	}
	h.quantiles([]float64{q - spread, q + spread}, []*int64{&low, &high})
	return low, high, true
}

// Differs reports whether quantile q of two distributions, with as many independent values, differs by more than chance
// explains.
func (h *Histogram) Differs(q float64, independent uint64, from *Histogram, fromIndependent uint64) bool {
	low, high, ok := h.bounds(q, independent)
	least, most, known := from.bounds(q, fromIndependent)
	return ok && known && (low > most || high < least)
}

// Min returns the least value, 0 for an empty histogram.
func (h *Histogram) Min() int64 { return h.min }

// Median returns the 50th percentile, 0 if the histogram is empty.
func (h *Histogram) Median() (median int64) {
	if h.Count() > 0 {
		h.quantiles([]float64{.5}, []*int64{&median})
	}
	return median
}
