package metric

import (
	"math"
	"math/bits"
)

// Buckets of a Histogram: each value below 2*subBuckets has its own bucket; each octave above is divided into
// subBuckets. So a bucket is at most 1/32 of its value wide, and its middle is off by at most 1/64.
const (
	subBits    = 5
	subBuckets = 1 << subBits
	octaves    = 40
	numBuckets = subBuckets * (octaves + 2) // up to 2^46 ns, 19.5 hours; larger values go into the last bucket
)

// Histogram is a log-linear histogram of times in ns, 5.4 KB. Merging is exact: combine windows and sources with Add,
// never by averaging percentiles. The zero value is empty.
type Histogram struct {
	counts   [numBuckets]uint32
	n        uint64
	sum, sq  float64
	min, max int64
}

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

// Count returns the number of recorded values.
func (h *Histogram) Count() uint64 { return h.n }

// Summary computes mean, deviation and percentiles.
func (h *Histogram) Summary() Summary {
	if h.n == 0 {
		return Summary{}
	}
	s := moments(h.n, h.sum, h.sq, h.min, h.max)
	h.quantiles(summarised, []*int64{&s.P50, &s.P90, &s.P95, &s.P99})
	return s
}

// summarised are the quantiles of a Summary.
var summarised = []float64{.5, .9, .95, .99}

// moments is a summary without its quantiles.
func moments(n uint64, sum, sq float64, least, most int64) Summary {
	if n == 0 {
		return Summary{}
	}
	s := Summary{Count: n, Mean: sum / float64(n), Min: least, Max: most}
	if n > 1 {
		s.StdDev = math.Sqrt(max(0, (sq-sum*s.Mean)/float64(n-1)))
	}
	return s
}

// ranks finds quantiles in one walk over the buckets; qs ascend. It takes the value at rank ceil(q*n), as the nearest-rank definition has it.
type ranks struct {
	qs         []float64
	out        []*int64
	n, seen    uint64
	least, top int64
}

// pass goes past a bucket with some values and reports whether all quantiles have been found.
func (r *ranks) pass(bucket int, count uint32) (found bool) {
	r.seen += uint64(count)
	for len(r.qs) > 0 && r.seen >= uint64(math.Ceil(r.qs[0]*float64(r.n))) {
		*r.out[0] = min(max(middle(bucket), r.least), r.top)
		r.qs, r.out = r.qs[1:], r.out[1:]
	}
	return len(r.qs) == 0
}

// quantiles writes the values at some quantiles to out, in one walk over the buckets. qs must ascend.
func (h *Histogram) quantiles(qs []float64, out []*int64) {
	r := ranks{qs: qs, out: out, n: h.n, least: h.min, top: h.max}
	for i, c := range h.counts {
		if c != 0 && r.pass(i, c) {
			return
		}
	}
}

// Sampled is a distribution of which so many values are independent: the gaps of one request are not.
type Sampled struct {
	Of          *Histogram
	Independent uint64
}

// bounds returns the values between which quantile q lies with 99 % probability, by the binomial distribution of ranks.
// It returns false if there are too few values for that.
func (s Sampled) bounds(q float64) (low, high int64, ok bool) {
	const z = 2.576
	spread := z * math.Sqrt(q*(1-q)/float64(s.Independent))
	if s.Of.n == 0 || s.Independent == 0 || q-spread <= 0 || q+spread >= 1 {
		return 0, 0, false
	}
	s.Of.quantiles([]float64{q - spread, q + spread}, []*int64{&low, &high})
	return low, high, true
}

// Differs reports whether quantile q of two distributions differs by more than chance explains.
func (s Sampled) Differs(from Sampled, q float64) bool {
	low, high, ok := s.bounds(q)
	least, most, known := from.bounds(q)
	return ok && known && (low > most || high < least)
}

// Median returns the 50th percentile, 0 if the histogram is empty.
func (h *Histogram) Median() (median int64) {
	if h.n > 0 {
		h.quantiles([]float64{.5}, []*int64{&median})
	}
	return median
}
