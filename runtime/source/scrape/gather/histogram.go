package gather

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// bounds are the upper bounds of buckets. They are immutable, and shared: all servers of an engine have the same.
type bounds struct {
	seconds []float64
	nanos   []int64
}

// maxShared limits the number of different bounds that are shared, some 500 bytes each.
const maxShared = 1024

// shared holds the bounds by their bytes.
var shared struct {
	sync.Mutex
	bounds map[string]*bounds
}

// boundsOf returns the bounds at the given times in s.
func boundsOf(seconds []float64) *bounds {
	key := make([]byte, 0, 8*len(seconds))
	for _, s := range seconds {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(s))
	}
	shared.Lock()
	defer shared.Unlock()
	b := shared.bounds[string(key)]
	if b != nil {
		return b
	}
	b = &bounds{slices.Clone(seconds), make([]int64, len(seconds))}
	for i, s := range seconds {
		b.nanos[i] = nanos(s)
	}
	if shared.bounds == nil {
		shared.bounds = make(map[string]*bounds)
	}
	if len(shared.bounds) < maxShared {
		shared.bounds[string(key)] = b
	}
	return b
}

// noBounds are those of a histogram without buckets.
var noBounds = &bounds{}

// equal reports whether both are the same bounds.
func (b *bounds) equal(o *bounds) bool { return b == o || slices.Equal(b.seconds, o.seconds) }

// histogram is one series of buckets: as of the last complete text, and as of the current text (next…). Counts are
// cumulative, as in the Prometheus format.
type histogram struct {
	bounds             *bounds // nil: no complete text yet
	counts             []float64
	sum, count         float64
	nextOther          []float64 // bounds; nil as long as they are those of bounds
	nextCounts         []float64 // in the reader: valid during the text only
	nextSum, nextCount float64
	countRound         uint64 // round in which nextCount was read
}

// reset prepares for the next text.
func (h *histogram) reset(r *reader) {
	h.nextOther, h.nextCounts = nil, r.room(len(h.previousBounds().seconds))
	h.nextSum, h.nextCount = 0, 0
}

// maxBounds limits the number of buckets.
const maxBounds = 256

// addBucket adds a bucket of the text. The +Inf bucket is skipped: it equals the count.
func (h *histogram) addBucket(bound, count float64) {
	n := len(h.nextCounts)
	if math.IsInf(bound, 0) || n > maxBounds {
		return
	}
	if before := h.previousBounds().seconds; h.nextOther == nil && (n >= len(before) || before[n] != bound) {
		h.nextOther = append(make([]float64, 0, n+1), before[:n]...)
	}
	if h.nextOther != nil {
		h.nextOther = append(h.nextOther, bound)
	}
	h.nextCounts = append(h.nextCounts, count)
}

// previousBounds returns the bounds of the last complete text.
func (h *histogram) previousBounds() *bounds {
	if h.bounds == nil {
		return noBounds
	}
	return h.bounds
}

// nextBounds returns the bounds of the text.
func (h *histogram) nextBounds() *bounds {
	before, n := h.previousBounds(), len(h.nextCounts)
	switch {
	case h.nextOther != nil:
		return boundsOf(h.nextOther)
	case n < len(before.seconds):
		return boundsOf(before.seconds[:n])
	default:
		return before
	}
}

// valid reports whether bounds and counts of the text ascend.
func (h *histogram) valid(bounds []float64) bool {
	for i := range bounds {
		if bounds[i] < 0 || i > 0 && (bounds[i] <= bounds[i-1] || h.nextCounts[i] < h.nextCounts[i-1]) {
			return false
		}
	}
	n := len(h.nextCounts)
	return n > 0 && n <= maxBounds && h.nextCounts[n-1] <= h.nextCount
}

// intervalHistogram holds the durations added since the last report, over all series.
type intervalHistogram struct {
	count, sum float64
	bounds     *bounds   // nil: no series yet
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
	next := h.nextBounds()
	valid := h.valid(next.seconds)
	previous := h
	if !hasPrevious {
		previous = &histogram{}
	}
	if counts {
		t.count += h.nextCount - previous.count
		t.sum += max(h.nextSum-previous.sum, 0)
	}
	switch {
	case !valid || t.counts != nil && t.count > 0 && !t.bounds.equal(next) && t.hasCounts():
		t.mismatched = true
	case hasPrevious && !h.bounds.equal(next):
		t.mismatched = true // the buckets have changed, so the increase has none
		t.setBounds(next)
	default:
		t.setBounds(next)
		if counts {
			t.addBuckets(previous, h)
		}
	}
	h.bounds, h.nextOther = next, nil
	h.counts, h.nextCounts = append(h.counts[:0], h.nextCounts...), nil
	h.sum, h.count = h.nextSum, h.nextCount
}

// hasCounts reports whether any bucket has counts since the last report.
func (t *intervalHistogram) hasCounts() bool {
	return slices.ContainsFunc(t.counts, func(c float64) bool { return c > 0 })
}

// setBounds sets the buckets to those of a series.
func (t *intervalHistogram) setBounds(b *bounds) {
	if t.bounds == nil || !t.bounds.equal(b) {
		t.counts = make([]float64, len(b.seconds)+1)
	}
	t.bounds = b
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
	if t.mismatched || t.bounds == nil || len(t.bounds.seconds) == 0 {
		return out
	}
	out.Bounds, out.Counts = t.bounds.nanos, make([]uint64, len(t.counts))
	for i, c := range t.counts {
		out.Counts[i] = clampCount(c)
	}
	return out
}

// nanos converts s to ns, within the limits of a report.
func nanos(s float64) int64 { return int64(clampCount(math.Round(s * 1e9))) }

// clampCount converts a count to the range allowed in a report.
func clampCount(v float64) uint64 { return uint64(min(max(v, 0), event.MaxNumber)) }
