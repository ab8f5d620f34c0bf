package metric

import (
	"math"
	"math/bits"
)

// Buckets of a Histogram: values below 2*subBuckets have one each; every octave above is cut into subBuckets, so that a
// bucket is at most 1/32 of its value wide and its middle off by at most 1/64.
const (
	subBits    = 5
	subBuckets = 1 << subBits
	octaves    = 40
	numBuckets = subBuckets * (octaves + 2) // up to 2^46 ns, 19.5 hours; larger values count in the last one
)

// Histogram is a log-linear distribution of times in ns, 5.4 KB. Adding one to another is exact: merge windows and sources by
// addition, never by averaging percentiles. The zero value is empty.
type Histogram struct {
	counts   [numBuckets]uint32
	n        uint64
	sum, sq  float64
	min, max int64
}

func bucket(v int64) int {
	if v < 2*subBuckets {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 1 - subBits
	return min(e*subBuckets+int(v>>e), numBuckets-1)
}

// middle is the value told for a bucket.
func middle(i int) int64 {
	if i < 2*subBuckets {
		return int64(i)
	}
	e := i/subBuckets - 1
	return int64(i-e*subBuckets)<<e + int64(1)<<e/2
}

// Record counts a value k times; negative values count as 0.
func (h *Histogram) Record(v int64, k uint32) {
	if k == 0 {
		return
	}
	v = max(v, 0)
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.counts[bucket(v)] += k
	h.n += uint64(k)
	h.sum += float64(v) * float64(k)
	h.sq += float64(v) * float64(v) * float64(k)
}

// Add merges o into h.
func (h *Histogram) Add(o *Histogram) {
	if o.n == 0 {
		return
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n, h.sum, h.sq = h.n+o.n, h.sum+o.sum, h.sq+o.sq
}

// Count is the number of values recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Summary describes the distribution.
func (h *Histogram) Summary() Summary {
	if h.n == 0 {
		return Summary{}
	}
	mean := h.sum / float64(h.n)
	s := Summary{Count: h.n, Mean: mean, Min: h.min, Max: h.max}
	if h.n > 1 {
		s.StdDev = math.Sqrt(max(0, (h.sq-h.sum*mean)/float64(h.n-1)))
	}
	h.quantiles([]float64{.5, .9, .95, .99}, []*int64{&s.P50, &s.P90, &s.P95, &s.P99})
	return s
}

// quantiles walks the buckets once; qs ascend. The value at rank ceil(q*n), as the nearest-rank definition has it.
func (h *Histogram) quantiles(qs []float64, out []*int64) {
	var seen uint64
	next := 0
	for i, c := range h.counts {
		if seen += uint64(c); c == 0 {
			continue
		}
		for next < len(qs) && seen >= uint64(math.Ceil(qs[next]*float64(h.n))) {
			*out[next] = min(max(middle(i), h.min), h.max)
			next++
		}
		if next == len(qs) {
			return
		}
	}
}

// Median is the 50th percentile, 0 if nothing was recorded.
func (h *Histogram) Median() (median int64) {
	if h.n > 0 {
		h.quantiles([]float64{.5}, []*int64{&median})
	}
	return median
}
