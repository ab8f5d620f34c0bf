package metric

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets are Buckets over every Window. The zero value is empty.
type WindowedBuckets struct {
	second  int64 // number of the current second
	current Buckets
	past    *[slots]packedBuckets // of second s at s % slots; nil: there are none
	session Buckets

	bounds []int64 // the last ones that were told
	layout uint32  // their number: 1 for the first ones
}

// packedBuckets are the Buckets of a second that is over, some 60 bytes.
type packedBuckets struct {
	second uint32
	layout uint32 // to which bounds the counts belong; 0: no quantile can be told
	count  uint64
	sum    int64
	counts []byte // varints of the buckets that hold something: the number of the first, then what each holds up to the last. Never written again
}

// Add adds what was told at a time in ns. Times that run backwards count in the current second.
func (w *WindowedBuckets) Add(now int64, t *event.Times) {
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

// pack ends the current second.
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

// seconds are those that are over.
func (w *WindowedBuckets) seconds() []packedBuckets {
	if w.past == nil {
		return nil
	}
	return w.past[:]
}

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

// fold adds those of a second that is over.
func (w *WindowedBuckets) fold(p *packedBuckets, into *Buckets) {
	if p.layout != w.layout || p.layout == 0 { // other buckets than those of today
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
		into.counts[i] += count
		rest = rest[n:]
	}
}

// addTo adds b to others.
func (b *Buckets) addTo(o *Buckets) {
	bounds := b.bounds
	if b.mixed {
		bounds = nil
	}
	o.merge(b.Count, b.Sum, bounds, b.counts)
}

// Session is the histogram of the whole session: the upper ends of its buckets in ns, which must not be changed, and a copy of the counts of each, one
// more. Nil if the buckets are not known, or were not always the same.
func (w *WindowedBuckets) Session() (bounds []int64, counts []uint64) {
	if b := &w.session; !b.mixed && b.Count > 0 {
		return b.bounds, slices.Clone(b.counts)
	}
	return nil, nil
}

// Summaries describes the durations over every window ending now. "last 1 s" is what was told last, within the current second or the one before.
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
