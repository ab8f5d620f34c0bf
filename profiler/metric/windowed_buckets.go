package metric

import (
	"slices"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets are Buckets over every Window. The zero value is empty.
type WindowedBuckets struct {
	second  int64 // number of the current second
	current Buckets
	past    [slots]*packedBuckets // of second s at s % slots
	session Buckets
}

// packedBuckets are the Buckets of a second that is over, without those at both ends that hold nothing: some 120 bytes. They are never written again.
type packedBuckets struct {
	second int64
	count  uint64
	sum    int64
	bounds []int64 // nil: no quantile can be told
	first  int     // bucket of counts[0]
	counts []uint64
}

// Add adds what was told at a time in ns. Times that run backwards count in the current second.
func (w *WindowedBuckets) Add(now int64, t *event.Times) {
	if t.Count == 0 {
		return
	}
	if s := now / int64(time.Second); s > w.second {
		if w.current.Count > 0 {
			w.past[w.second%slots] = w.current.pack(w.second)
		}
		w.current.reset()
		w.second = s
	}
	w.current.Add(t)
	w.session.Add(t)
}

func (b *Buckets) pack(second int64) *packedBuckets {
	p := &packedBuckets{second: second, count: b.Count, sum: b.Sum}
	if b.mixed {
		return p
	}
	p.bounds = b.bounds
	some := func(n uint64) bool { return n > 0 }
	if p.first = slices.IndexFunc(b.counts, some); p.first >= 0 {
		end := len(b.counts)
		for b.counts[end-1] == 0 {
			end--
		}
		p.counts = slices.Clone(b.counts[p.first:end])
	}
	return p
}

// fold adds those of a second.
func (b *Buckets) fold(p *packedBuckets) { b.merge(p.count, p.sum, p.bounds, p.counts, p.first) }

// addTo adds b to others.
func (b *Buckets) addTo(o *Buckets) {
	bounds := b.bounds
	if b.mixed {
		bounds = nil
	}
	o.merge(b.Count, b.Sum, bounds, b.counts, 0)
}

// Clone is a copy that shares nothing that will be written again.
func (w *WindowedBuckets) Clone() *WindowedBuckets {
	c := *w
	c.current.counts, c.session.counts = slices.Clone(c.current.counts), slices.Clone(c.session.counts)
	return &c
}

// Session is the histogram of the whole session: the upper ends of its buckets in ns, which must not be changed, and a copy of the counts of each, one
// more. Nil if the buckets are not known, or were not always the same.
func (w *WindowedBuckets) Session() (bounds []int64, counts []uint64) {
	if b := &w.session; !b.mixed && b.Count > 0 {
		return b.bounds, slices.Clone(b.counts)
	}
	return nil, nil
}

// Size is the memory that w takes, in bytes, without what clones share.
func (w *WindowedBuckets) Size() int {
	n := int(unsafe.Sizeof(*w)) + 8*cap(w.current.counts) + 8*cap(w.session.counts)
	for _, p := range w.past {
		if p != nil {
			n += int(unsafe.Sizeof(*p)) + 8*cap(p.counts)
		}
	}
	return n
}

// Summaries describes the durations over every window ending now. "last 1 s" is what was told last, within the current second or the one before.
func (w *WindowedBuckets) Summaries(now int64) (out [NumWindows]BucketSummary) {
	s := now / int64(time.Second)
	var last, ten, minute Buckets
	for _, p := range w.past {
		if p == nil || p.second <= s-60 || p.second > s {
			continue
		}
		if minute.fold(p); p.second > s-10 {
			ten.fold(p)
		}
		if p.second == s-1 {
			last.fold(p)
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
