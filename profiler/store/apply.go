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
			s.applyKV(p)
		}
	case event.KindStep:
		s.applyStep(e)
	case event.KindHost:
		if p, ok := e.Data.(*event.Host); ok && p != nil {
			s.applyHost(e.At, p)
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
