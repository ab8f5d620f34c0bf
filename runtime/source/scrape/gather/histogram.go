package gather

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxBounds limits the number of buckets.
const maxBounds = 256

// histogram is one series of buckets: as of the last complete text, and as of the current text (next…). Counts are
// cumulative, as in the Prometheus format.
type histogram struct {
	bounds, counts         []float64 // bounds are in s; nil: no complete text yet
	sum, count             float64
	nextBounds, nextCounts []float64
	nextSum, nextCount     float64 // NaN: not in the text so far
}

// reset prepares for the next text.
func (h *histogram) reset() {
	h.nextBounds, h.nextCounts = h.nextBounds[:0], h.nextCounts[:0]
	h.nextSum, h.nextCount = math.NaN(), math.NaN()
}

// addBucket adds a bucket of the text. The +Inf bucket is skipped: it equals the count.
func (h *histogram) addBucket(bound, count float64) {
	if !math.IsInf(bound, 0) && len(h.nextCounts) <= maxBounds {
		h.nextBounds, h.nextCounts = append(h.nextBounds, bound), append(h.nextCounts, count)
	}
}

// valid reports whether bounds and counts of the text ascend.
func (h *histogram) valid() bool {
	for i, bound := range h.nextBounds {
		if bound < 0 || i > 0 && (bound <= h.nextBounds[i-1] || h.nextCounts[i] < h.nextCounts[i-1]) {
			return false
		}
	}
	n := len(h.nextCounts)
	return n > 0 && n <= maxBounds && h.nextCounts[n-1] <= h.nextCount
}

// intervalHistogram holds the durations added since the last report, over all series.
type intervalHistogram struct {
	count, sum float64
	bounds     []float64 // in s; nil: no series yet
	nanos      []int64   // the same in ns; reports share them
	counts     []float64 // per bucket, one more than bounds
	mismatched bool      // buckets of the series differ or are invalid
}

// clear starts a report interval. It keeps the buckets, which are reported even without durations.
func (t *intervalHistogram) clear() {
	t.count, t.sum, t.mismatched = 0, 0, false
	clear(t.counts)
}

// add adds the increase of a series and makes its current text the previous one. Without a previous text all of it
// counts, or nothing.
func (t *intervalHistogram) add(h *histogram, hasPrevious, counts bool) {
	next, valid, previous := h.nextBounds, h.valid(), h
	if !hasPrevious {
		previous = &histogram{}
	}
	if counts {
		t.count += h.nextCount - previous.count
		t.sum += h.nextSum - previous.sum
	}
	switch {
	case !valid || t.counts != nil && t.count > 0 && !slices.Equal(t.bounds, next) && t.hasCounts():
		t.mismatched = true
	case hasPrevious && !slices.Equal(h.bounds, next):
		t.mismatched = true // the buckets have changed, so the increase has none
		t.setBounds(next)
	default:
		t.setBounds(next)
		if counts {
			t.addBuckets(previous, h)
		}
	}
	h.bounds, h.nextBounds = next, h.bounds
	h.counts, h.nextCounts = h.nextCounts, h.counts
	h.sum, h.count = h.nextSum, h.nextCount
}

// hasCounts reports whether any bucket has counts since the last report.
func (t *intervalHistogram) hasCounts() bool {
	return slices.ContainsFunc(t.counts, func(c float64) bool { return c > 0 })
}

// setBounds sets the buckets to those of a series.
func (t *intervalHistogram) setBounds(seconds []float64) {
	if t.bounds != nil && slices.Equal(t.bounds, seconds) {
		return
	}
	t.bounds = append(make([]float64, 0, len(seconds)), seconds...)
	t.counts, t.nanos = make([]float64, len(seconds)+1), make([]int64, len(seconds))
	for i, s := range seconds {
		t.nanos[i] = nanos(s)
	}
}

// addBuckets adds the increase of each bucket.
func (t *intervalHistogram) addBuckets(before, h *histogram) {
	last := 0.0
	for i, c := range h.nextCounts {
		if i < len(before.counts) {
			c -= before.counts[i]
		}
		t.counts[i] += max(c-last, 0)
		last = max(c, last)
	}
	t.counts[len(h.nextCounts)] += max(h.nextCount-before.count-last, 0)
}

// aggregate returns the histogram for a report.
func (t *intervalHistogram) aggregate(name string) event.Histogram {
	out := event.Histogram{Name: name, Count: clampCount(t.count), Sum: nanos(t.sum)}
	if t.mismatched || len(t.bounds) == 0 {
		return out
	}
	out.Bounds, out.Counts = t.nanos, make([]uint64, len(t.counts))
	for i, c := range t.counts {
		out.Counts[i] = clampCount(c)
	}
	return out
}

// nanos converts s to ns, within the limits of a report.
func nanos(s float64) int64 { return int64(clampCount(math.Round(s * 1e9))) }

// clampCount converts a count to the range allowed in a report.
func clampCount(v float64) uint64 { return uint64(min(max(v, 0), event.MaxNumber)) }
