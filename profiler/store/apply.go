package store

import (
	"github.com/llmtop/llmtop/profiler/event"
)

// apply adds one event to the state. It trusts nothing: ids may be unknown or repeat, times may run backwards, payloads
// may be missing.
func (s *state) apply(e *event.Event) {
	if !s.hasEvents || e.At < s.started { // sources stamp before they emit: the first event may not be the earliest
		s.hasEvents, s.started = true, e.At
	}
	s.version++
	s.closeSeconds(e.At)
	switch e.Kind {
	case event.KindEngine:
		if p, ok := e.Data.(*event.EngineInfo); ok && p != nil {
			s.engine = *p
		}
	case event.KindModel:
		s.applyModel(e)
	case event.KindRequest:
		s.applyRequest(e)
	case event.KindStage:
		s.applyStage(e)
	case event.KindToken:
		s.applyToken(e)
	case event.KindExperts:
		if p, ok := e.Data.(*event.Experts); ok && p != nil {
			s.applyExperts(e.At, p)
		}
	case event.KindKV:
		if p, ok := e.Data.(*event.KV); ok && p != nil {
			s.kv.apply(p)
		}
	case event.KindStep:
		s.applyStep(e)
	case event.KindHost:
		if p, ok := e.Data.(*event.Host); ok && p != nil {
			s.machine.apply(e.At, p)
		}
	case event.KindAggregates:
		if p, ok := e.Data.(*event.Aggregates); ok && p != nil {
			s.applyAggregates(e, p)
		}
	case event.KindOps:
		if p, ok := e.Data.(*event.Ops); ok && p != nil {
			s.ops = p
		}
	case event.KindCounters:
		if p, ok := e.Data.(*event.Counters); ok && p != nil {
			s.counters = p
		}
	case event.KindLog:
		s.applyLog(e)
	case event.KindDrops:
		if p, ok := e.Data.(*event.Drops); ok && p != nil {
			s.sourceDrops = *p
		}
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

// applyLoad adds a stage to the waterfall of the last model load.
func (s *state) applyLoad(e *event.Event) {
	s.load = event.AddLoadStage(s.load, newSpan(e), 2*int(event.NumStages), func(p *StageSpan) event.LoadStage {
		return event.LoadStage{Stage: p.Stage, Name: p.Name, Begin: p.Start, End: p.End}
	})
}
