package store

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// MaxHistograms bounds the histograms of one engine, each up to 40 KB.
const MaxHistograms = 32

// Aggregates holds the last report of an engine's aggregate metrics and its histograms over each window. It is
// immutable.
type Aggregates struct {
	event.Aggregates                     // the last report; its Histograms cover its interval only
	At               event.Time          // time of the last report; 0: none has come
	Histograms       []WindowedHistogram // in the order in which the engine first reported them
	Numbers          []ServerNumber      // over the session, in the order in which they were first reported
	RankLoad         *RankLoad           // nil: the engine does not spread experts over ranks, or does not report it
	Earlier          *event.Earlier      // what the engine had counted before the session; nil: unknown
}

// WindowedHistogram is a distribution of durations that the engine counts, over each window and over time.
type WindowedHistogram struct {
	Name string
	*metric.BucketsView
}

// Histogram returns the histogram with a name; nil if the engine does not report it.
func (r *Aggregates) Histogram(name string) *WindowedHistogram {
	i := slices.IndexFunc(r.Histograms, func(t WindowedHistogram) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Histograms[i]
}

// Summary returns the distribution of a histogram over a window.
func (r *Aggregates) Summary(name string, w metric.Window) metric.Distribution {
	t := r.Histogram(name)
	if t == nil {
		return metric.Distribution{Origin: event.NotReported}
	}
	return t.BucketsView.Summary(w)
}

// TTFTParts are the mean parts of TTFT that a server reports.
type TTFTParts struct {
	Parts []Part  // means, "other" is last if Total is above 0
	Total float64 // mean TTFT in ns, which Parts divide; 0: they do not
	Apart bool    // the parts are means of different requests than TTFT, or than each other: they must not be added
}

// Undivided reports whether the engine reports TTFT without a part of it: "other" is then the whole, and no component.
func (p *TTFTParts) Undivided() bool { return p.Total > 0 && len(p.Parts) == 1 }

// partsTolerance is how far the numbers of requests in TTFT and in its parts may differ, as a share of the largest. An
// engine counts TTFT at the first token and the parts often at the last one, so that requests in progress differ.
const partsTolerance = 0.1

// partsExcess is how far the parts may exceed TTFT, as a share of it: for the rounding of the engine's sums.
const partsExcess = 0.01

// Parts divides the mean TTFT of a window into the mean parts that the engine reports, and "other". It does not divide
// if the parts are of other requests, or exceed the whole.
func (r *Aggregates) Parts(w metric.Window) (out TTFTParts) {
	least, most, sum := uint64(math.MaxUint64), uint64(0), 0.0
	counted := func(name string) (mean float64, count uint64) {
		s := r.Summary(name, w)
		if s.Count == 0 {
			return 0, 0
		}
		least, most = min(least, s.Count), max(most, s.Count)
		return s.Mean, s.Count
	}
	total, _ := counted(event.HistogramTTFT)
	for _, p := range [...]struct {
		stage event.Stage
		name  string
	}{{event.StageQueue, event.HistogramQueue}, {event.StagePrompt, event.HistogramPrefill}} {
		if mean, count := counted(p.name); count > 0 {
			out.Parts = append(out.Parts, newPart(p.stage, mean, total, count))
			sum += mean
		}
	}
	switch {
	case len(out.Parts) > 0 && (float64(most-least) > partsTolerance*float64(most) || total > 0 && sum > total*(1+partsExcess)):
		out.Apart = true
	case total > 0:
		out.Parts, out.Total = append(out.Parts, newPart(event.StageNone, max(total-sum, 0), total, 0)), total
	}
	return out
}

func newPart(stage event.Stage, ns, total float64, count uint64) Part {
	return Part{Stage: stage, Dur: time.Duration(ns), Share: metric.Share(ns, total), Count: count}
}

// aggregates collects the reports of an engine's aggregate metrics.
type aggregates struct {
	reported bool // at least one report has arrived
	last     event.Aggregates
	at       event.Time
	names    []string                  // of the histograms, in order of appearance
	windows  []*metric.WindowedBuckets // in the order of names
	keep     int                       // seconds of the trend of each histogram

	running, queued int // requests, the most since the last point

	numbers serverNumbers
	shown   serverNumbers // a copy for snapshots; nil: outdated
	load    rankLoad
	earlier *event.Earlier
}

// apply stores a report.
func (r *aggregates) apply(at event.Time, p *event.Aggregates) {
	r.reported, r.last, r.at = true, *p, at
	r.last.Histograms = nil
	r.last.KVUsage, r.last.CacheHits = clampShare(p.KVUsage), clampShare(p.CacheHits)
	if p.KVUsed.OK() && p.KVTotal.OK() && p.KVUsed.V > event.MaxShare*p.KVTotal.V { // they contradict each other
		r.last.KVUsed, r.last.KVTotal = event.Reading{}, event.Reading{}
	}
	r.last.More, r.last.Counts = separateCounts(p)
	r.running, r.queued = max(r.running, int(countOf(p.Running))), max(r.queued, int(countOf(p.Waiting)))
	r.numbers.add(at, &r.last)
	r.shown = nil
	r.load.add(at, p.ExpertRanks)
	if p.Earlier != nil && r.earlier == nil {
		r.earlier = p.Earlier
	}
	for i := range p.Histograms {
		r.addHistogram(at, p.Interval, &p.Histograms[i])
	}
}

// separateCounts returns the values and the counts of a report. Before there were counts, preemptions were among the
// values.
func separateCounts(p *event.Aggregates) (values, counts []event.NamedReading) {
	i := slices.IndexFunc(p.More, func(n event.NamedReading) bool { return n.Name == event.CountPreemptions })
	if i < 0 {
		return p.More, p.Counts
	}
	return slices.Delete(slices.Clone(p.More), i, i+1), append(slices.Clone(p.Counts), p.More[i])
}

func (r *aggregates) addHistogram(at event.Time, interval int64, t *event.Histogram) {
	name := clip(t.Name, MaxName)
	i := slices.Index(r.names, name)
	if i < 0 {
		if i = len(r.names); i >= MaxHistograms {
			return
		}
		r.names, r.windows = append(r.names, name), append(r.windows, &metric.WindowedBuckets{Keep: r.keep})
	}
	r.windows[i].Add(int64(at), max(interval, 0), t)
}

// maxReportedCount is the largest count that one report adds, so that sums do not overflow.
const maxReportedCount = 1e12

// countOf returns a reading as a count within 0..maxReportedCount; 0 if it is absent.
func countOf(r event.Reading) uint64 {
	if !r.OK() {
		return 0
	}
	return uint64(math.Round(min(max(r.V, 0), maxReportedCount)))
}

// clampShare clamps a reported share to 0..1; absent if it is too large for one.
func clampShare(r event.Reading) event.Reading {
	if r.V > event.MaxShare {
		return event.Reading{}
	}
	if r.OK() {
		r.V = metric.Share(r.V, 1)
	}
	return r
}

// view returns what snapshots show of the reports; zero before the first.
func (r *aggregates) view(now event.Time) Aggregates {
	if !r.reported {
		return Aggregates{}
	}
	if r.shown == nil {
		r.shown = slices.Clone(r.numbers)
	}
	v := Aggregates{Aggregates: r.last, At: max(r.at, 1), Numbers: r.shown, RankLoad: r.load.view(now), Earlier: r.earlier}
	if len(r.names) > 0 {
		v.Histograms = make([]WindowedHistogram, len(r.names))
	}
	for i, name := range r.names {
		v.Histograms[i] = WindowedHistogram{name, r.windows[i].View(int64(now))}
	}
	return v
}

// fillThroughput replaces rates computed from per-request events, of which there are none or not all, by the reported
// ones. Of a server whose requests are all seen on their way, only the numbers of running and queued ones are.
func (r *aggregates) fillThroughput(t *Throughput, seen bool) {
	switch {
	case !r.reported:
		return
	case seen:
		if r.last.Running.OK() && r.last.Waiting.OK() {
			t.Running, t.Queued = int(countOf(r.last.Running)), int(countOf(r.last.Waiting))
		}
		return
	}
	t.Decode, t.Prefill = r.last.Decode, r.last.Prefill
	if r.last.Generated.Origin == event.NotReported {
		t.TTPS, t.SessionTTPS = event.Reading{}, event.Reading{}
	}
	if r.last.Finished.Origin == event.NotReported {
		t.Requests = event.Reading{}
	}
	t.Running, t.Queued = int(countOf(r.last.Running)), int(countOf(r.last.Waiting))
}

// fillPoint sets the rates of the second that has ended from the last report, and the peak of running and queued
// requests within that second. If no report has arrived for 2.5 intervals, and 2.5 s, the point is Silent.
func (r *aggregates) fillPoint(p *RatePoint) {
	if !r.reported {
		return
	}
	if age := p.At + event.Time(second) - r.at; float64(age) > max(2.5*float64(r.last.Interval), 2.5*second) {
		p.KVShare, p.Silent = math.NaN(), true
		return
	}
	if d := r.last.Decode; d.OK() {
		p.Decode = d.V
	}
	if d := r.last.Prefill; d.OK() {
		p.Prefill = d.V
	}
	p.CacheHits, p.Accepted, p.Preempted = r.cacheHits(), r.reportedShare(event.RatioAccepted), r.preemptions()
	if load := r.load.view(p.At); load != nil {
		p.RankImbalance = float32(orNaN(load.Imbalance(load.Recent)))
	}
	p.Running, p.Queued = r.running, r.queued
	r.running, r.queued = int(countOf(r.last.Running)), int(countOf(r.last.Waiting))
}

var noValue = float32(math.NaN())

// CacheHitShare returns the share of prompt tokens that came from a cache: over the session, or if the engine counts only
// a share of its own, the last one.
func (r *Aggregates) CacheHitShare() event.Reading {
	switch n := r.Number(event.RatioCacheHits); {
	case n == nil:
		return r.CacheHits
	case n.Kind == Quotient:
		return n.Value
	default:
		return n.Last
	}
}

// cacheHits returns the cache hits of the last report, 0..1; NaN if it had none.
func (r *aggregates) cacheHits() float32 {
	if hits := r.last.CacheHits; hits.OK() {
		return float32(hits.V)
	}
	return r.reportedShare(event.RatioCacheHits)
}

// reportedShare returns a share of the last report, 0..1, or NaN.
func (r *aggregates) reportedShare(name string) float32 {
	for i := range r.last.Ratios {
		if q := &r.last.Ratios[i]; q.Name == name && q.Part.OK() && q.Whole.OK() && q.Whole.V > 0 {
			return float32(metric.Share(q.Part.V, q.Whole.V))
		}
	}
	return namedValue(r.last.More, name)
}

// preemptions returns the requests/s that the last report counts, or NaN.
func (r *aggregates) preemptions() float32 {
	if r.last.Interval <= 0 {
		return noValue
	}
	return namedValue(r.last.Counts, event.CountPreemptions) / float32(float64(r.last.Interval)/second)
}

// namedValue returns the value with a name, or NaN.
func namedValue(values []event.NamedReading, name string) float32 {
	for _, v := range values {
		if v.Name == name && v.OK() {
			return float32(v.V)
		}
	}
	return noValue
}
