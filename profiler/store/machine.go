package store

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// applyHost stores a sample of the machine. Readings that are not in every sample keep their last value.
func (s *state) applyHost(at event.Time, p *event.Host) {
	h := &s.host
	h.Host, h.At, h.Sampled = *p, at, true
	if p.Engine.PSS != (event.Reading{}) {
		h.Inspection.PSS, h.Inspection.PSSAt = p.Engine.PSS, at
	}
	if p.ModelBytes != (event.Reading{}) {
		h.Inspection.ModelBytes, h.Inspection.ModelCached, h.Inspection.ModelAt = p.ModelBytes, p.ModelCached, at
	}
	h.Host.Engine.PSS, h.Host.ModelBytes, h.Host.ModelCached = h.Inspection.PSS, h.Inspection.ModelBytes, h.Inspection.ModelCached
	if n := len(h.Series); n > 0 && at < h.Series[n-1].At { // keep the series in order
		return
	}
	h.Series = push(h.Series, newHostPoint(at, p, &s.gapsSinceSample), SeriesLen)
}

// orNaN returns a reading for a chart: NaN, a gap, if it is absent.
func orNaN(r event.Reading) float64 {
	if !r.OK() {
		return math.NaN()
	}
	return r.V
}

// applyKV stores the state of the KV cache.
func (s *state) applyKV(p *event.KV) {
	s.kv.Used, s.kv.Total = max(p.Used, 0), max(p.Total, 0)
	s.kv.Usage = event.Absent(event.NotReported)
	if p.Total > 0 {
		s.kv.Usage = event.DerivedValue(metric.Share(float64(s.kv.Used), float64(p.Total)))
	}
	if p.Freed > 0 {
		s.residency.Record(p.Residency, 1)
	}
}

// applyLog stores a line of the engine's log.
func (s *state) applyLog(e *event.Event) {
	if len(s.log) >= MaxLog {
		s.counts.OmittedLogLines += MaxLog / 4
	}
	s.log = push(s.log, LogLine{At: e.At, Text: clip(e.Text, MaxLine)}, MaxLog)
}

// applyModel replaces the model. Router picks and operation times start at zero.
func (s *state) applyModel(e *event.Event) {
	if p, ok := e.Data.(*event.Model); ok && p != nil {
		s.model, s.loadTook = *p, max(e.Dur, 0)
		s.experts, s.tokenPicks, s.picksIncomplete, s.newestDispatch, s.ops = nil, nil, false, dispatchMark{}, nil
	}
}
