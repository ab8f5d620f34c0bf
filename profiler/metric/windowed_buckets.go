package metric

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets keeps Buckets over every Window. The zero value is empty.
type WindowedBuckets struct {
	second  int64 // number of the current second
	current Buckets
	past    *[slots]packedBuckets // second s is at s % slots; nil: empty
	session Buckets

	bounds []int64 // the last reported bounds
	layout uint32  // number of bounds, counted up with each change; 1 for the first ones
}

// packedBuckets holds the Buckets of a past second in some 60 bytes.
type packedBuckets struct {
	second uint32
	layout uint32 // layout that the counts belong to; 0: no quantile can be computed
	count  uint64
	sum    int64
	counts []byte // varints: index of the first non-empty bucket, then the counts up to the last non-empty one; immutable
}

// Add adds a histogram reported at a time in ns. Times before the current second count in the current second.
func (w *WindowedBuckets) Add(now int64, t *event.Histogram) {
	if t.Count == 0 {
		return
	}
	if s := now / int64(time.Second); s > w.second {
		w.pack()
		w.second = s
	}
	if len(t.Bounds) > 0 && len(t.Counts) == len(t.Bounds)+1 && !same(w.bounds, t.Bounds) {
		w.bounds = t.Bounds
		w.layout++
	}
	w.current.Add(t)
	w.session.Add(t)
}

// pack moves the current second to the past ones.
func (w *WindowedBuckets) pack() {
	b := &w.current
	if b.Count == 0 {
		return
	}
	if w.past == nil {
		w.past = new([slots]packedBuckets)
	}
	p := packedBuckets{second: uint32(w.second), count: b.Count, sum: b.Sum}
	if !b.mixed {
		p.layout, p.counts = w.layout, packCounts(b.counts)
	}
	w.past[w.second%slots] = p
	b.reset()
}

// seconds returns the past seconds.
func (w *WindowedBuckets) seconds() []packedBuckets {
	if w.past == nil {
		return nil
	}
	return w.past[:]
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

// fold adds a past second to into.
func (w *WindowedBuckets) fold(p *packedBuckets, into *Buckets) {
	if p.layout != w.layout || p.layout == 0 { // other bounds than the current ones
		into.merge(p.count, p.sum, nil, nil)
		return
	}
	into.merge(p.count, p.sum, w.bounds, nil)
	if into.mixed {
		return
	}
	first, n := binary.Uvarint(p.counts)
	for i, rest := int(first), p.counts[n:]; len(rest) > 0; i++ {
		count, n := binary.Uvarint(rest)
		into.counts[i] = event.AddCount(into.counts[i], count)
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
	seconds := w.seconds()
	for i := range seconds {
		p := &seconds[i]
		age := s - int64(p.second)
		if p.count == 0 || age < 0 || age >= 60 {
			continue
		}
		if w.fold(p, &minute); age < 10 {
			w.fold(p, &ten)
		}
		if age == 1 {
			w.fold(p, &last)
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
