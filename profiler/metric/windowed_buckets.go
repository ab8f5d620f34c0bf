package metric

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets keeps a histogram of the session and, second by second, what had been counted up to its end: a window is
// the difference of two of these totals. The zero value is empty and keeps the seconds of the longest window.
type WindowedBuckets struct {
	Keep int // past seconds with values to keep, if more than the longest window needs

	session Buckets
	total   totals
	second  pastSecond // the current one
	past    []pastSecond
	packed  []byte // totals at the ends of past seconds, in some 45 bytes each

	end    int64        // number of the second in which windows end
	bounds []int64      // the last reported ones
	view   *BucketsView // the last one; nil: values were added since
}

// totals are what was counted up to a moment. Their numbers may wrap around: only differences are used.
type totals struct {
	count, began uint64   // values; and at the last change of the bounds, which identifies them
	sum          int64    // ns
	counts       []uint64 // per bucket since then; nil: no bounds were reported
}

// pastSecond is a second with values. It is never written again.
type pastSecond struct {
	second uint32
	covers uint32 // seconds that it covers: this one and those before it
	at     uint32 // where its totals begin in packed
}

// dropSeconds is how many seconds more than needed are kept before they are dropped together.
const dropSeconds = 16

// BucketsView is a histogram of an engine at a moment: over every Window, and second by second. It is immutable.
type BucketsView struct {
	end            int64
	past           []pastSecond // oldest first
	packed         []byte
	second         pastSecond // the current one
	total, session []byte     // totals, packed: most views are read only in part, and hundreds are kept
	bounds         []int64
}

// Add adds a histogram reported at a time in ns for the interval in ns before it. Times before the current second count in
// the current second.
func (w *WindowedBuckets) Add(now, interval int64, t *event.Histogram) {
	if t.Count == 0 {
		return
	}
	s := now / int64(time.Second)
	if s > int64(w.second.second) {
		w.closeSecond()
		w.second = pastSecond{second: uint32(s), covers: 1}
		w.end = max(w.end, s)
	}
	w.second.covers = max(w.second.covers, uint32(min(s-(now-interval)/int64(time.Second), math.MaxInt32)))
	bounds := t.Bounds
	if len(t.Counts) != len(bounds)+1 {
		bounds = nil
	}
	if n := w.total.count; n == 0 || len(bounds) != len(w.total.counts)-1 || !same(w.bounds, bounds) {
		w.total.began, w.total.counts = n, nil
	}
	if len(bounds) > 0 {
		w.bounds = bounds
		w.total.counts = append(w.total.counts, make([]uint64, len(t.Counts)-len(w.total.counts))...)
		for i, n := range t.Counts {
			w.total.counts[i] += n
		}
	}
	w.total.count, w.total.sum = w.total.count+t.Count, w.total.sum+t.Sum
	w.session.Add(t)
	w.view = nil
}

// closeSecond moves the current second to the past ones.
func (w *WindowedBuckets) closeSecond() {
	if w.total.count == 0 {
		return
	}
	w.second.at = uint32(len(w.packed))
	w.past, w.packed = append(w.past, w.second), w.total.pack(w.packed)
	if drop := len(w.past) - max(w.Keep, slots); drop >= dropSeconds { // views share the others
		begin := w.past[drop-1].at // the totals before the first one stay
		w.packed = append(make([]byte, 0, len(w.packed)), w.packed[begin:]...)
		w.past = append(make([]pastSecond, 0, len(w.past)), w.past[drop:]...)
		for i := range w.past {
			w.past[i].at -= begin
		}
	}
}

// View returns the histogram over every window ending now, or where the windows ended last if that is later.
func (w *WindowedBuckets) View(now int64) *BucketsView {
	w.end = max(w.end, now/int64(time.Second))
	if w.view == nil || w.view.end != w.end {
		session := totals{count: w.session.Count, sum: w.session.Sum, counts: w.session.Counts()}
		var buf [512]byte
		packed := w.total.pack(buf[:0])
		n := len(packed)
		packed = slices.Clone(session.pack(packed))
		w.view = &BucketsView{w.end, slices.Clip(w.past), slices.Clip(w.packed), w.second, packed[:n], packed[n:], w.bounds}
	}
	return w.view
}

// pack appends t as varints: count, sum, began, index of the first used bucket, counts up to the last used one. Without
// bounds began is the last number.
func (t *totals) pack(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendVarint(binary.AppendUvarint(dst, t.count), t.sum), t.began)
	if t.counts == nil {
		return dst
	}
	first, end := 0, len(t.counts)
	for first < end && t.counts[first] == 0 {
		first++
	}
	for first < end && t.counts[end-1] == 0 {
		end--
	}
	dst = binary.AppendUvarint(dst, uint64(first))
	for _, n := range t.counts[first:end] {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// unpackTotals returns packed totals but for the buckets, and these packed, none without bounds. Empty ones are those of the
// beginning.
func unpackTotals(packed []byte) (t totals, buckets []byte) {
	n, m, k := 0, 0, 0
	if len(packed) > 0 {
		t.count, n = binary.Uvarint(packed)
		t.sum, m = binary.Varint(packed[n:])
		t.began, k = binary.Uvarint(packed[n+m:])
	}
	return t, packed[n+m+k:]
}

// addBuckets adds packed buckets, or takes them away.
func (b *Buckets) addBuckets(packed []byte, take bool) {
	first, n := binary.Uvarint(packed)
	for i, packed := int(first), packed[max(n, 0):]; len(packed) > 0; i++ {
		count, n := binary.Uvarint(packed)
		if packed = packed[n:]; take {
			count = -count
		}
		b.counts[i] += count
	}
}

// difference sets b to what was counted from one of two packed totals to the other.
func (v *BucketsView) difference(b *Buckets, from, to []byte) {
	begin, before := unpackTotals(from)
	end, buckets := unpackTotals(to)
	last, _ := unpackTotals(v.total)
	b.reset()
	b.Count, b.Sum = end.count-begin.count, end.sum-begin.sum
	if b.mixed = len(buckets) == 0 || end.began != last.began || end.began != begin.began && end.began != begin.count; b.mixed {
		return
	}
	b.bounds, b.counts = v.bounds, append(b.counts, make([]uint64, len(v.bounds)+1)...)
	b.addBuckets(buckets, false)
	if end.began == begin.began {
		b.addBuckets(before, true)
	}
}

// upTo returns the totals at the end of past second i; -1: before the first one.
func (v *BucketsView) upTo(i int) []byte {
	from, to := uint32(0), uint32(len(v.packed))
	if i >= 0 {
		from = v.past[i].at
	}
	if i+1 < len(v.past) {
		to = v.past[i+1].at
	}
	return v.packed[from:to]
}

// Summary describes the durations over a window. "last 1 s" is the latest report, from the current second or the one
// before.
func (v *BucketsView) Summary(w Window) Distribution {
	var buf [64]uint64 // more than engines have
	b, before := Buckets{counts: buf[:0]}, len(v.past)-1
	if w == Session {
		bounds, counts := v.Session()
		t, _ := unpackTotals(v.session)
		return summarise(t.count, t.sum, bounds, counts)
	}
	span := max(int64(w.Span()/time.Second), 2)
	if v.end-int64(v.second.second) >= span {
		return Distribution{Origin: event.NotYet}
	}
	for w != Second && before >= 0 && v.end-int64(v.past[before].second) < span {
		before--
	}
	v.difference(&b, v.upTo(before), v.total)
	return b.Summary()
}

// Session returns the histogram of the whole session: the upper bounds of its buckets in ns, and the counts, which are
// one more. Both are nil if the bounds are unknown or changed. The bounds must not be changed.
func (v *BucketsView) Session() (bounds []int64, counts []uint64) {
	_, buckets := unpackTotals(v.session)
	if len(buckets) == 0 {
		return nil, nil
	}
	b := Buckets{counts: make([]uint64, len(v.bounds)+1)}
	b.addBuckets(buckets, false)
	return v.bounds, b.counts
}

// Bounds returns the upper bounds in ns of all buckets but the last; nil if they are unknown. They must not be changed.
func (v *BucketsView) Bounds() []int64 { return v.bounds }

// Columns sets each of the columns, one per second up to the second last, to the values of the report that covers it: an
// empty one where none does.
func (v *BucketsView) Columns(columns []Buckets, last int64) {
	for i := range columns {
		columns[i].reset()
	}
	second, to := v.second, v.total
	for k := len(v.past) - 1; k >= -1; k-- {
		from := v.upTo(k)
		newest := int64(second.second) - last + int64(len(columns)) - 1
		if newest < 0 {
			return
		}
		for i := min(newest, int64(len(columns))-1); i > newest-int64(second.covers) && i >= 0; i-- {
			if columns[i].Count == 0 {
				v.difference(&columns[i], from, to)
			}
		}
		if to = from; k >= 0 {
			second = v.past[k]
		}
	}
}
