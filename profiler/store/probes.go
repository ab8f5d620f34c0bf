package store

import (
	"iter"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Excluded reports whether a request is excluded from the statistics: llmtop's own probe of an engine that reports
// aggregates, whose counters include it already.
func (s *Snapshot) Excluded(r *Request) bool { return excluded(r.Probe, s.Engine.Caps) }

func excluded(probe bool, caps event.Caps) bool { return probe && caps.Has(event.CapAggregates) }

// recentProbes is how many of the newest probes a summary covers.
const recentProbes = 32

// Probes summarises the newest probes of an engine.
type Probes struct {
	Count, Failed    int           // ended probes
	TTFT, TPOT, E2EL event.Reading // s, medians of the finished ones
	Last             *Request      // the newest one; nil without probes
}

// Probes summarises llmtop's own requests, at most recentProbes of them.
func (s *Snapshot) Probes() (p Probes) {
	var ttft, tpot, e2el []float64
	add := func(to *[]float64, r event.Reading) {
		if r.OK() {
			*to = append(*to, r.V)
		}
	}
	each := func(r *Request) {
		if !r.Probe || p.Count >= recentProbes {
			return
		}
		if p.Last == nil {
			p.Last = r
		}
		switch {
		case !r.State.Final():
			return
		case r.State != event.StateFinished:
			p.Failed++
		default:
			add(&ttft, r.TTFT)
			add(&tpot, r.TPOT)
			add(&e2el, r.E2EL)
		}
		p.Count++
	}
	for _, r := range s.Requests {
		each(r)
	}
	for _, r := range slices.Backward(s.Earlier) {
		each(r)
	}
	p.TTFT, p.TPOT, p.E2EL = medianOf(ttft), medianOf(tpot), medianOf(e2el)
	return p
}

// medianOf returns the lower median of v, absent if v is empty.
func medianOf(v []float64) event.Reading {
	if len(v) == 0 {
		return event.Absent(event.NotYet)
	}
	slices.Sort(v)
	return event.DerivedValue(v[(len(v)-1)/2])
}

// CountedIn returns the kept requests that are in the distribution of warm or of cold TTFT over a window.
func (s *Snapshot) CountedIn(w metric.Window, cold bool) iter.Seq[*Request] {
	in := func(from, to int64) iter.Seq[*Request] {
		return func(yield func(*Request) bool) {
			for _, list := range [...][]*Request{s.Earlier, s.Requests} {
				for _, r := range list {
					at := int64(r.Counted) / int64(second)
					if r.Counted != 0 && r.TTFT.OK() && r.Cold == cold && at >= from && at <= to && !yield(r) {
						return
					}
				}
			}
		}
	}
	now := int64(s.Now) / int64(second)
	if p := s.Throughput.Series.Last(); p != nil { // an engine whose clock is ahead has begun the next second already
		now = max(now, int64(p.At)/int64(second)+1)
	}
	switch w {
	case metric.Session:
		return in(0, now)
	case metric.Second: // see metric.Windowed
		for range in(now-1, now-1) {
			return in(now-1, now-1)
		}
	}
	return in(now+1-int64(w.Span()/time.Second), now)
}
