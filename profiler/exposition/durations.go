package exposition

import (
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// MaxBuckets bounds the buckets of reported durations that are told together. Of engines that find no room in that, in the order in which they came, only
// counts and sums are told.
const MaxBuckets = 1 << 16

// durations are what an engine has counted of its own times, added up since it began to count them in these buckets.
type durations struct {
	since  time.Time
	count  uint64
	sum    int64 // ns
	bounds []int64
	counts []uint64 // one more than bounds; nil: only count and sum are known
}

// add adds what an engine has counted over an interval. Other buckets than those before are no reason to mix them up: it is counted anew, as after a
// restart.
func (d *durations) add(t *event.Times, now time.Time) {
	bounds, counts := t.Bounds, t.Counts
	if len(bounds) == 0 || len(counts) != len(bounds)+1 {
		bounds, counts = nil, nil
	}
	if d.since.IsZero() || !slices.Equal(bounds, d.bounds) {
		*d = durations{since: now, bounds: slices.Clone(bounds), counts: make([]uint64, len(counts))}
	}
	d.count += t.Count
	d.sum += max(t.Sum, 0)
	for i, n := range counts {
		d.counts[i] += n
	}
}

// histogram is what Prometheus is told. Without buckets it is a count and a sum.
func (d *durations) histogram(buckets bool) *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(d.count), SampleSum: new(float64(d.sum) / 1e9), CreatedTimestamp: timestamppb.New(d.since)}
	if !buckets {
		return h
	}
	below := uint64(0)
	for i, ns := range d.bounds {
		below += d.counts[i]
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(float64(ns) / 1e9), CumulativeCount: new(below)})
	}
	return h
}

// timed names durations, and says whose word they are.
type timed struct {
	name   string
	origin event.Origin
}

// times takes in a report, whose durations are of its interval alone. The caller holds the lock.
func (e *Engine) times(p *event.Report) {
	for i := range p.Times {
		if t := &p.Times[i]; t.Count > 0 {
			e.counted(timed{word(t.Name), event.Reported}, t)
		}
	}
}

// seenBounds are those of durations that llmtop has made of what it saw, in ns.
var seenBounds = func() (ns []int64) {
	for _, s := range tokenBounds {
		ns = append(ns, int64(s*1e9))
	}
	return ns
}()

// seen takes in a duration of a request that was seen in a slot. The caller holds the lock.
func (e *Engine) seen(name string, ns int64) {
	at, _ := slices.BinarySearch(seenBounds, ns)
	counts := make([]uint64, len(seenBounds)+1)
	counts[at] = 1
	e.counted(timed{name, event.Derived}, &event.Times{Count: 1, Sum: ns, Bounds: seenBounds, Counts: counts})
}

func (e *Engine) counted(of timed, t *event.Times) {
	d := e.durations[of]
	if d == nil {
		if len(e.durations) >= store.MaxTimes {
			return
		}
		d = new(durations)
		e.durations[of] = d
	}
	d.add(t, time.Now())
}
