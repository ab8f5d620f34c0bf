package metric

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets keeps Buckets over every Window and second by second. The zero value is empty and keeps the seconds of
// the longest window.
type WindowedBuckets struct {
	Keep int // past seconds with values to keep, if more than the longest window needs

	second  int64 // number of the current second
	covers  int64 // seconds that the reports of the current second cover
	current Buckets
	past    []SecondBuckets // oldest first; shared with trends: entries are never written again
	session Buckets

	bounds []int64 // the last reported bounds
	layout uint16  // number of bounds, counted up with each change; 1 for the first ones
}

// SecondBuckets holds the Buckets of a second in some 60 bytes. It is immutable.
type SecondBuckets struct {
	second uint32
	covers uint16 // seconds that it covers: this one and those before it
	layout uint16 // layout that the counts belong to; 0: no quantile can be computed
	count  uint64
	sum    int64
	counts []byte // varints: index of the first non-empty bucket, then the counts up to the last non-empty one
}

// Add adds a histogram reported at a time in ns for the interval in ns before it. Times before the current second count in
// the current second.
func (w *WindowedBuckets) Add(now, interval int64, t *event.Histogram) {
	if t.Count == 0 {
		return
	}
	s := now / int64(time.Second)
	if s > w.second {
		w.closeSecond()
		w.second, w.covers = s, 1
	}
	w.covers = max(w.covers, s-(now-interval)/int64(time.Second))
	if len(t.Bounds) > 0 && len(t.Counts) == len(t.Bounds)+1 && !same(w.bounds, t.Bounds) {
		w.bounds = t.Bounds
		w.layout++
	}
	w.current.Add(t)
	w.session.Add(t)
}

// closeSecond moves the current second to the past ones.
func (w *WindowedBuckets) closeSecond() {
	if w.current.Count == 0 {
		return
	}
	if keep := max(w.Keep, slots); len(w.past) >= keep+keep/4 { // seldom, since it copies
		w.past = append(make([]SecondBuckets, 0, keep+keep/4), w.past[len(w.past)-keep+1:]...)
	}
	w.past = append(w.past, w.pack())
	w.current.reset()
}

// pack returns the current second.
func (w *WindowedBuckets) pack() SecondBuckets {
	b := &w.current
	p := SecondBuckets{second: uint32(w.second), covers: uint16(min(w.covers, math.MaxUint16)), count: b.Count, sum: b.Sum}
	if !b.mixed && b.Count > 0 {
		p.layout, p.counts = w.layout, packCounts(b.counts)
	}
	return p
}

// packCounts encodes counts for packedBuckets.
func packCounts(counts []uint64) []byte {
	first, end := 0, len(counts)
	for first < end && counts[first] == 0 {
		first++
	}
	for first < end && counts[end-1] == 0 {
		end--
	}
	var buf [16 * binary.MaxVarintLen64]byte
	packed := binary.AppendUvarint(buf[:0], uint64(first))
	for _, n := range counts[first:end] {
		packed = binary.AppendUvarint(packed, n)
	}
	return bytes.Clone(packed)
}

// addTo adds p to o. bounds and layout are those of the histogram at present.
func (p *SecondBuckets) addTo(o *Buckets, bounds []int64, layout uint16) {
	if p.layout != layout || p.layout == 0 { // other bounds
		o.merge(p.count, p.sum, nil, nil)
		return
	}
	o.merge(p.count, p.sum, bounds, nil)
	if o.mixed {
		return
	}
	first, n := binary.Uvarint(p.counts)
	for i, rest := int(first), p.counts[n:]; len(rest) > 0; i++ {
		count, n := binary.Uvarint(rest)
		o.counts[i] = event.AddCount(o.counts[i], count)
		rest = rest[n:]
	}
}

// addTo adds b to o.
func (b *Buckets) addTo(o *Buckets) {
	bounds := b.bounds
	if b.mixed {
		bounds = nil
	}
	o.merge(b.Count, b.Sum, bounds, b.counts)
}

// Trend returns the buckets second by second.
func (w *WindowedBuckets) Trend() BucketTrend {
	t := BucketTrend{past: slices.Clip(w.past), bounds: w.bounds, layout: w.layout}
	if w.current.Count > 0 {
		p := w.pack()
		t.current = &p
	}
	return t
}

// Session returns the histogram of the whole session: the upper bounds of its buckets in ns, which must not be changed,
// and a copy of the counts, which are one more. Both are nil if the bounds are unknown or changed.
func (w *WindowedBuckets) Session() (bounds []int64, counts []uint64) {
	if b := &w.session; !b.mixed && b.Count > 0 {
		return b.bounds, slices.Clone(b.counts)
	}
	return nil, nil
}

// Summaries describes the durations over every window ending now. "last 1 s" is the latest report, from the current
// second or the one before.
func (w *WindowedBuckets) Summaries(now int64) (out [NumWindows]BucketSummary) {
	s := now / int64(time.Second)
	var last, ten, minute Buckets
	for i := range slices.Backward(w.past) {
		p := &w.past[i]
		age := s - int64(p.second)
		if age >= 60 {
			break
		}
		if age < 0 {
			continue
		}
		if p.addTo(&minute, w.bounds, w.layout); age < 10 {
			p.addTo(&ten, w.bounds, w.layout)
		}
		if age == 1 {
			p.addTo(&last, w.bounds, w.layout)
		}
	}
	switch age := s - w.second; {
	case age < 0 || age >= 60 || w.current.Count == 0:
	case age < 2:
		last.reset()
		w.current.addTo(&last)
		fallthrough
	case age < 10:
		w.current.addTo(&ten)
		fallthrough
	default:
		w.current.addTo(&minute)
	}
	out[Second], out[TenSeconds], out[Minute], out[Session] = last.Summary(), ten.Summary(), minute.Summary(), w.session.Summary()
	return out
}
