package exposition

import (
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// MaxBuckets is the most buckets of reported histograms in one gathering. Engines that do not fit, in the order in
// which they were added, export count and sum only.
const MaxBuckets = 1 << 16

// histogramTotals is a histogram that an engine counts, summed up since it has used these buckets.
type histogramTotals struct {
	since  time.Time
	count  uint64
	sum    int64 // ns
	bounds []int64
	counts []uint64 // one more than bounds; nil: only count and sum are available
}

// add adds the counts of an interval. If the buckets have changed, counting starts over, as after a restart.
func (d *histogramTotals) add(t *event.Histogram, now time.Time) {
	bounds, counts := t.Bounds, t.Counts
	if len(bounds) == 0 || len(counts) != len(bounds)+1 {
		bounds, counts = nil, nil
	}
	if d.since.IsZero() || !slices.Equal(bounds, d.bounds) {
		*d = histogramTotals{since: now, bounds: slices.Clone(bounds), counts: make([]uint64, len(counts))}
	}
	d.count += t.Count
	d.sum += max(t.Sum, 0)
	for i, n := range counts {
		d.counts[i] += n
	}
}

// histogram returns the Prometheus form. Without buckets it has count and sum only.
func (d *histogramTotals) histogram(buckets bool) *dto.Histogram {
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

// addHistograms adds the histograms of a report, which count its interval only. A report that says that what was counted
// before is of several processes starts them again. The caller holds the lock.
func (e *EngineExporter) addHistograms(p *event.Aggregates) {
	if p.Void {
		clear(e.histograms)
	}
	for i := range p.Histograms {
		if t := &p.Histograms[i]; t.Count > 0 {
			e.accumulate(cleanLabel(t.Name), t)
		}
	}
}

// accumulate adds counts to a histogram, up to store.MaxHistograms of them.
func (e *EngineExporter) accumulate(name string, t *event.Histogram) {
	d := e.histograms[name]
	if d == nil {
		if len(e.histograms) >= store.MaxHistograms {
			return
		}
		d = new(histogramTotals)
		e.histograms[name] = d
	}
	d.add(t, time.Now())
}
