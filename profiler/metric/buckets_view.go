package metric

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// BucketsView is a histogram of an engine at a moment: over every Window, and second by second. It is immutable.
type BucketsView struct {
	end, second, covers int64 // as in WindowedBuckets
	past                pastBuckets
	bounds              []int64
	layout              uint16
	ends                [numSums]uint32 // where the sums end in packed
	packed              []byte          // the sums, see Buckets.pack: most views are read only in part, and hundreds are kept
}

// The sums in a BucketsView: the current second, the recent windows and the session.
const (
	currentSum = iota
	recentSum
	sessionSum = recentSum + len(recentSpans)
	numSums    = sessionSum + 1
)

// newBucketsView returns the view of w at its end.
func newBucketsView(w *WindowedBuckets) *BucketsView {
	v := &BucketsView{end: w.end, second: w.second, covers: w.covers, past: w.past.shared(), bounds: w.bounds, layout: w.layout}
	sums := [numSums]*Buckets{currentSum: &w.current, sessionSum: &w.session}
	for i := range w.recent {
		sums[recentSum+i] = &w.recent[i].Buckets
	}
	var buf [512]byte
	packed := buf[:0]
	for i, b := range sums {
		packed = b.pack(packed)
		v.ends[i] = uint32(len(packed))
	}
	v.packed = slices.Clone(packed)
	return v
}

// Summary describes the durations over a window.
func (v *BucketsView) Summary(w Window) Distribution {
	packed, bounds := v.window(w)
	if packed == nil {
		return Distribution{Origin: event.NotYet}
	}
	count, sum, counts := unpackBuckets(packed)
	if len(counts) == 0 || len(bounds) == 0 {
		return summarise(count, sum, nil, nil)
	}
	var buf [64]uint64 // more than engines have
	all := buf[:]
	if len(bounds) >= len(all) {
		all = make([]uint64, len(bounds)+1)
	}
	for i, n := range bucketCounts(counts) {
		all[i] = n
	}
	return summarise(count, sum, bounds, all[:len(bounds)+1])
}

// window returns the packed durations over a window, nil without any, and their bounds, nil if they are unknown. "last
// 1 s" is the latest report, from the current second or the one before.
func (v *BucketsView) window(w Window) (packed []byte, bounds []int64) {
	age := v.end - v.second // of the current second
	newest := v.past.len() - 1
	switch recent := int(w - TenSeconds); {
	case w == Session:
		return v.sum(sessionSum), v.bounds
	case w != Second && age < recentSpans[recent]:
		return v.sum(recentSum + recent), v.bounds
	case w == Second && age < 2 && v.hasCurrent():
		return v.sum(currentSum), v.bounds
	case w == Second && newest >= 0 && v.end-v.past.second(newest) == 1:
		layout, packed := v.past.packed(newest)
		if layout != v.layout {
			return packed, nil
		}
		return packed, v.bounds
	}
	return nil, nil
}

// sum returns one of the sums, packed.
func (v *BucketsView) sum(i int) []byte {
	from := 0
	if i > 0 {
		from = int(v.ends[i-1])
	}
	return v.packed[from:v.ends[i]]
}

// hasCurrent reports whether there are values in the current second.
func (v *BucketsView) hasCurrent() bool { return v.packed[0] != 0 }

// Session returns the histogram of the whole session: the upper bounds of its buckets in ns, and the counts, which are
// one more. Both are nil if the bounds are unknown or changed. The bounds must not be changed.
func (v *BucketsView) Session() (bounds []int64, counts []uint64) {
	var b Buckets
	b.addPacked(v.sum(sessionSum), v.bounds)
	if counts = b.Counts(); counts == nil {
		return nil, nil
	}
	return b.bounds, counts
}

// Bounds returns the upper bounds in ns of all buckets but the last; nil if they are unknown. They must not be changed.
func (v *BucketsView) Bounds() []int64 { return v.bounds }

// Columns sets each of the columns, one per second up to the second last, to the values of the report that covers it: an
// empty one where none does.
func (v *BucketsView) Columns(columns []Buckets, last int64) {
	for i := range columns {
		columns[i].reset()
	}
	// fill sets the columns that a second covers, which have no values yet. It reports whether earlier seconds may follow.
	fill := func(second, covers int64, add func(*Buckets)) bool {
		newest := second - last + int64(len(columns)) - 1
		for i := min(newest, int64(len(columns))-1); i > newest-covers && i >= 0; i-- {
			if columns[i].Count == 0 {
				add(&columns[i])
			}
		}
		return newest >= 0
	}
	if v.hasCurrent() && !fill(v.second, v.covers, func(b *Buckets) { b.addPacked(v.sum(currentSum), v.bounds) }) {
		return
	}
	for i := v.past.len() - 1; i >= 0; i-- {
		c, k := v.past.find(i)
		if s := &c.seconds[k]; !fill(int64(s.second), int64(s.covers), func(b *Buckets) { v.past.addTo(b, i, v.bounds, v.layout) }) {
			return
		}
	}
}
