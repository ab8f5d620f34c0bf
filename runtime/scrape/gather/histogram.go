package gather

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// histogram is one series of buckets: as they were in the last text that was read to its end, and as they are in the one that is read.
// Counts are cumulative, as the format has them.
type histogram struct {
	known bool // there is a value from before
	fresh bool // the series has begun after the first text: what it holds has come since

	bounds, counts         []float64
	sum, count             float64
	nextBounds, nextCounts []float64
	nextSum, nextCount     float64
	counted                uint64 // round in which nextCount was read
}

// begin begins to read a text.
func (h *histogram) begin() {
	h.nextBounds, h.nextCounts = h.nextBounds[:0], h.nextCounts[:0]
	h.nextSum, h.nextCount = 0, 0
}

// maxBounds bounds the buckets of a histogram.
const maxBounds = 256

// bucket takes a bucket; that of +Inf holds what the count holds.
func (h *histogram) bucket(bound, count float64) {
	if !math.IsInf(bound, 0) && len(h.nextBounds) <= maxBounds {
		h.nextBounds, h.nextCounts = append(h.nextBounds, bound), append(h.nextCounts, count)
	}
}

// sound reports whether the buckets of the text make sense: their bounds ascend, and so do their counts.
func (h *histogram) sound() bool {
	for i := range h.nextBounds {
		if h.nextBounds[i] < 0 || i > 0 && (h.nextBounds[i] <= h.nextBounds[i-1] || h.nextCounts[i] < h.nextCounts[i-1]) {
			return false
		}
	}
	n := len(h.nextCounts)
	return n > 0 && n <= maxBounds && h.nextCounts[n-1] <= h.nextCount
}

// times are the durations that have come since the last report, of all series together.
type times struct {
	count, sum float64
	bounds     []float64
	ends       []int64   // bounds in ns, shared by reports and never written again
	counts     []float64 // by bucket, one more than bounds
	mixed      bool      // the buckets of different series do not fit one another, or make no sense
}

// clear begins a report. The buckets stay: they are told also where nothing has come.
func (t *times) clear() {
	t.count, t.sum, t.mixed = 0, 0, false
	clear(t.counts)
}

// take adds what has come to a series, and makes the text that was read the one from before. It reports whether the counts have begun anew.
func (t *times) take(h *histogram) (anew bool) {
	sound := h.sound()
	anew = h.known && h.nextCount < h.count
	from := h
	if anew || !h.known {
		from = &histogram{}
	}
	if h.known || h.fresh {
		t.count += h.nextCount - from.count
		t.sum += max(h.nextSum-from.sum, 0)
	}
	switch {
	case !sound || t.counts != nil && t.count > 0 && !slices.Equal(t.bounds, h.nextBounds) && t.holds():
		t.mixed = true
	case h.known && !anew && !slices.Equal(h.bounds, h.nextBounds):
		t.mixed = true // other buckets than before: what has come cannot be told by them
		t.shape(h.nextBounds)
	default:
		t.shape(h.nextBounds)
		if h.known || h.fresh {
			t.add(from, h)
		}
	}
	h.bounds, h.nextBounds = h.nextBounds, h.bounds
	h.counts, h.nextCounts = h.nextCounts, h.counts
	h.sum, h.count, h.known = h.nextSum, h.nextCount, true
	return anew
}

// holds reports whether something was counted by bucket since the last report.
func (t *times) holds() bool {
	return slices.ContainsFunc(t.counts, func(c float64) bool { return c > 0 })
}

// shape takes the buckets of a series.
func (t *times) shape(bounds []float64) {
	if !slices.Equal(t.bounds, bounds) || t.counts == nil {
		t.bounds = append(t.bounds[:0], bounds...)
		t.counts = make([]float64, len(bounds)+1)
		t.ends = make([]int64, len(bounds))
		for i, b := range bounds {
			t.ends[i] = nanos(b)
		}
	}
}

// add adds what each bucket holds now less what it held before.
func (t *times) add(before, h *histogram) {
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

// tell makes times of a report of what has come.
func (t *times) tell(name string) event.Times {
	out := event.Times{Name: name, Count: uint64(t.count), Sum: nanos(t.sum)}
	if t.mixed || len(t.bounds) == 0 {
		return out
	}
	out.Bounds, out.Counts = t.ends, make([]uint64, len(t.counts))
	for i, c := range t.counts {
		out.Counts[i] = uint64(c)
	}
	return out
}

// nanos is a time in s as ns.
func nanos(s float64) int64 { return int64(math.Round(min(max(s, 0), 1e9) * 1e9)) }
