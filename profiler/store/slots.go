package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func duration(ns float64) time.Duration { return time.Duration(ns) }

// unseenEnd is how a request has ended that was seen in a slot: the column of reasons has 11 cells, and cuts off what is longer.
const unseenEnd = "not reported"

// applySlots follows the requests in an engine's slots. They are seen when somebody looks: how far they are is known, and not when their tokens came.
func (s *state) applySlots(at event.Time, slots []event.Slot) {
	if len(slots) == 0 && !s.polled {
		return
	}
	s.polled = len(slots) > 0
	here := make(map[event.RequestID]bool, len(slots))
	for i := range slots {
		if v := &slots[i]; v.Request != 0 {
			here[v.Request] = true
			s.applySlot(at, v)
		}
	}
	for _, l := range s.requests.list {
		if l.view.Polled && l.done == nil && !here[l.view.ID] {
			s.vanish(l, at)
		}
	}
}

func (s *state) applySlot(at event.Time, p *event.Slot) {
	l := s.requests.byID[p.Request]
	if l == nil {
		var forgot bool
		if l, forgot = s.requests.add(p.Request); forgot {
			s.counts.MoreRequests++
		}
		l.view.Polled, l.late = true, true
		l.view.Enqueued, l.view.Dispatched, l.view.Targets = at, at, s.targets
	}
	v := &l.view
	if !v.Polled || l.done != nil {
		return
	}
	v.State, v.Slot = event.StateDispatched, max(p.Slot, 0)
	v.PromptTokens, v.PromptDone, v.CachedTokens = max(p.Prompt, 0), max(p.Processed, 0), max(p.Cached, 0)
	v.MaxTokens = max(p.Max, 0)
	if n := max(p.Generated, 0); n > v.Generated {
		if v.First == 0 {
			v.First, l.seen = at, n
		}
		v.Generated, v.Last = n, at
	}
}

// vanish ends a request that is in no slot any more.
func (s *state) vanish(l *live, at event.Time) {
	v := &l.view
	v.State, v.Reason, v.Closed = event.StateFinished, unseenEnd, max(at, v.Enqueued)
	s.counts.Polled++
	s.measure(l)
	l.done, l.itl, l.text = l.copy(), nil, nil
	s.requests.done++
	s.recordRequest(l.done)
	if s.onRequest != nil {
		s.onRequest(l.done)
	}
}

// leastPolled is for how long a request must have been seen for its speed to be told. Of requests hardly longer than the time between two looks only the
// slow ones are seen twice.
const leastPolled = event.Time(700 * time.Millisecond)

// measurePolled is for a request that was seen in a slot: only how fast its tokens came can be told, by how many there were at two moments.
func measurePolled(l *live) {
	v := &l.view
	unseen := event.Absent(event.NotReported)
	v.STIL, v.TTFT, v.Prefill, v.PrefillRate, v.E2EL, v.TPS, v.Overall = unseen, unseen, unseen, unseen, unseen, unseen, unseen
	v.Decode, v.TPOT, v.DecodeRate = unseen, event.Absent(event.NotYet), event.Absent(event.NotYet)
	if n, took := v.Generated-l.seen, v.Last-v.First; n > 0 && took >= leastPolled {
		v.DecodeRate = event.From(float64(n) / (float64(took) / second))
		v.TPOT = event.From(1 / v.DecodeRate.V)
	}
}
