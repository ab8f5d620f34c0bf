package store

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// MaxTimes bounds the kinds of durations that an engine counts, each up to 40 KB.
const MaxTimes = 32

// Reported is what an engine tells of itself in sum. It is never written again.
type Reported struct {
	event.Report            // the last one; its Times are those of its interval alone
	At           event.Time // of the last one
	Spans        []Times    // in the order in which the engine tells them
}

// Times are durations that the engine has counted, over each window.
type Times struct {
	Name    string
	Windows [metric.NumWindows]metric.BucketSummary
	Bounds  []int64  // ns, of the session's histogram: the upper ends of its buckets but the last one, which has none; nil if they are not known
	Counts  []uint64 // of each bucket, one more than Bounds
}

// Over is how long something took over a window; nil if the engine does not count it.
func (r *Reported) Over(name string, w metric.Window) *metric.BucketSummary {
	i := slices.IndexFunc(r.Spans, func(t Times) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Spans[i].Windows[w]
}

// Parts divides the mean TTFT of a window into its mean parts, those that the engine counts, "other" last; total is the mean TTFT, 0 where the engine
// does not count it: then the parts are all that is known. They are means over different requests: TTFT counts with the first token, the parts often with
// the last one. Nil if there is nothing to divide.
func (r *Reported) Parts(w metric.Window) (parts []Part, total float64) {
	mean := func(name string) float64 {
		if s := r.Over(name, w); s != nil && s.Count > 0 {
			return s.Mean
		}
		return 0
	}
	total = mean(event.TimesTTFT)
	rest := total
	if total == 0 {
		rest = math.MaxInt64
	}
	for _, p := range [...]struct {
		stage event.Stage
		name  string
	}{{event.StageQueue, event.TimesQueue}, {event.StagePrompt, event.TimesPrefill}} {
		if v := min(mean(p.name), rest); v > 0 {
			parts = append(parts, partOf(p.stage, v, total))
			rest -= v
		}
	}
	if total > 0 {
		parts = append(parts, partOf(event.StageNone, rest, total))
	}
	return parts, total
}

func partOf(stage event.Stage, ns, total float64) Part {
	p := Part{Stage: stage, Dur: duration(ns)}
	if total > 0 {
		p.Share = ns / total
	}
	return p
}

// reported is what the store keeps of reports.
type reported struct {
	last  event.Report
	at    event.Time
	names []string
	spans map[string]*metric.WindowedBuckets

	running, queued int // requests, the most since the last point
}

// applyReport takes in a report.
func (s *state) applyReport(e *event.Event, p *event.Report) {
	if s.reported == nil {
		s.reported = &reported{spans: make(map[string]*metric.WindowedBuckets)}
	}
	r := s.reported
	r.last, r.at = *p, e.At
	r.running, r.queued = max(r.running, int(gained(p.Running))), max(r.queued, int(gained(p.Waiting)))
	for i := range p.Times {
		r.add(e.At, &p.Times[i])
	}
	c := &s.counts
	c.Finished += gained(p.Finished)
	c.Failed += gained(p.Failed)
	c.PromptTokens += gained(p.Prompt)
	c.CachedTokens += gained(p.Cached)
	c.GeneratedTokens += gained(p.Generated)
	if n := gained(p.Generated); n > 0 {
		s.rates.generated(e.At, int(n))
	}
	s.kv = KV{Usage: p.KVUsage}
	if p.KVUsed.OK() && p.KVTotal.OK() {
		s.kv.Used, s.kv.Total = cellsOf(p.KVUsed), cellsOf(p.KVTotal)
		if !s.kv.Usage.OK() && s.kv.Total > 0 {
			s.kv.Usage = event.From(float64(s.kv.Used) / float64(s.kv.Total))
		}
	}
	s.applySlots(e.At, p.Slots)
}

func (r *reported) add(at event.Time, t *event.Times) {
	name := clip(t.Name, MaxName)
	w := r.spans[name]
	if w == nil {
		if len(r.names) >= MaxTimes {
			return
		}
		w = new(metric.WindowedBuckets)
		r.spans[name] = w
		r.names = append(r.names, name)
	}
	w.Add(int64(at), t)
}

// most is the largest count that a report adds, so that sums do not overflow.
const most = 1e12

func gained(r event.Reading) uint64 {
	if !r.OK() {
		return 0
	}
	return uint64(math.Round(min(max(r.V, 0), most)))
}

func cellsOf(r event.Reading) int64 { return int64(gained(r)) }

// view is what snapshots show of the reports.
func (r *reported) view(now event.Time) *Reported {
	v := &Reported{Report: r.last, At: r.at}
	for _, name := range r.names {
		t := Times{Name: name, Windows: r.spans[name].Summaries(int64(now))}
		t.Bounds, t.Counts = r.spans[name].Session()
		v.Spans = append(v.Spans, t)
	}
	return v
}

// fill puts what was reported in place of what is made of single requests, of which there are none, or not all.
func (r *reported) fill(t *Throughput) {
	t.Decode, t.Prefill = r.last.Decode, r.last.Prefill
	if r.last.Generated.Origin == event.NotReported {
		t.TTPS, t.SessionTTPS = event.Reading{}, event.Reading{}
	}
	t.Running, t.Queued = int(gained(r.last.Running)), int(gained(r.last.Waiting))
}

// point puts the rates of the last report into the second that is over, and the most requests in any of that second, unless nothing has come for long.
func (r *reported) point(p *RatePoint) {
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
	p.Running, p.Queued = r.running, r.queued
	r.running, r.queued = int(gained(r.last.Running)), int(gained(r.last.Waiting))
}
