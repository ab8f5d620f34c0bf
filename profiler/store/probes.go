package store

import (
	"iter"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Excluded reports whether a request is excluded from the statistics: one made to measure, of an engine that
// reports aggregates, whose counters include it already.
func (s *Snapshot) Excluded(r *Request) bool { return excluded(r.Probe, s.Engine.Caps) }

func excluded(probe bool, caps event.Caps) bool { return probe && caps.Has(event.CapAggregates) }

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
