package store

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
)

// applyHost takes in a sample of the machine.
func (s *state) applyHost(at event.Time, p *event.Host) {
	h := &s.host
	h.Host, h.At, h.Known = *p, at, true
	if p.Engine.PSS != (event.Reading{}) {
		h.Looked.PSS, h.Looked.PSSAt = p.Engine.PSS, at
	}
	if p.ModelBytes != (event.Reading{}) {
		h.Looked.ModelBytes, h.Looked.ModelCached, h.Looked.ModelAt = p.ModelBytes, p.ModelCached, at
	}
	if n := len(h.Series); n > 0 && at < h.Series[n-1].At { // they stay in order
		return
	}
	h.Series = push(h.Series, pointOf(at, p, &s.gaps), SeriesLen)
}

// plain is a reading for a chart: NaN, a gap, where it is absent.
func plain(r event.Reading) float64 {
	if !r.OK() {
		return math.NaN()
	}
	return r.V
}

// applyKV takes in the state of the KV cache.
func (s *state) applyKV(p *event.KV) {
	s.kv.Used, s.kv.Total = max(p.Used, 0), max(p.Total, 0)
	s.kv.Usage = event.Absent(event.NotReported)
	if p.Total > 0 {
		s.kv.Usage = event.From(float64(s.kv.Used) / float64(p.Total))
	}
	if p.Freed > 0 {
		s.pins.Record(p.Residency, 1)
	}
}

// applyLog keeps a line of the engine's log.
func (s *state) applyLog(e *event.Event) {
	if len(s.log) >= MaxLog {
		s.counts.MoreLogDropped += MaxLog / 4
	}
	s.log = push(s.log, LogLine{At: e.At, Text: clip(e.Text, MaxLine)}, MaxLog)
}

// applyModel begins with another model, whose router and operations start from nothing.
func (s *state) applyModel(e *event.Event) {
	if p, ok := e.Data.(*event.Model); ok && p != nil {
		s.model, s.loadTook, s.experts, s.told, s.untold, s.newest, s.ops = *p, max(e.Dur, 0), nil, nil, false, newest{}, nil
	}
}
