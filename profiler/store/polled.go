package store

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// unknownReason is the reason of a polled request's end. The column of reasons has 11 cells and truncates longer words.
const unknownReason = "not reported"

// applyAggregates stores a report of aggregate metrics and adds its counts to the session's totals.
func (s *state) applyAggregates(at event.Time, p *event.Aggregates) {
	hadSlots := len(s.aggregates.last.Slots) > 0
	if p.Void {
		s.aggregates, s.rates = aggregates{keep: s.aggregates.keep}, rates{}
	}
	s.rates.addReport(at, p)
	if at < event.Time(p.Interval)/2 {
		p = withoutCounts(p)
	}
	s.aggregates.apply(at, p)
	s.counts.addReport(p)
	s.kv.report(&s.aggregates.last)
	if hadSlots || len(p.Slots) > 0 {
		s.applySlots(at, p.Slots)
	}
}

// withoutCounts returns a report whose interval is mostly before the session, without what was counted in it.
func withoutCounts(p *event.Aggregates) *event.Aggregates {
	out := *p
	for _, r := range []*event.Reading{&out.Finished, &out.Failed, &out.Cancelled, &out.Prompt, &out.Cached, &out.Generated} {
		if r.OK() {
			*r = event.Absent(event.NotYet)
		}
	}
	out.Histograms, out.Counts, out.Ratios, out.ExpertRanks = nil, nil, nil, nil
	return &out
}

// serve adds one second of the requests that a polled server reported last as running. A server that was stopped reports
// nothing, but they run on. Without samples of its threads or of its machine, no cause could be found.
func (s *state) serve(sec int64) {
	c, n := &s.causes, countOf(s.aggregates.last.Running)
	if n == 0 || sec < secondOf(s.started) || !c.sampled() || s.engine.Caps.Has(event.CapTokens) || s.engine.Remote.Link.Down() {
		return
	}
	ns := int64(n) * int64(time.Second)
	c.observe(event.Time(sec)*event.Time(time.Second), ns, ns)
	if w := c.at(sec); w != nil {
		w.served = ns
	}
}

// applySlots updates the requests in an engine's polled slots. Polling shows their progress, but not when their tokens
// were generated.
func (s *state) applySlots(at event.Time, slots []event.Slot) {
	present := make(map[event.RequestID]bool, len(slots))
	for i := range slots {
		if v := &slots[i]; v.Request != 0 {
			present[v.Request] = true
			s.applySlot(at, v)
		}
	}
	for l := range s.requests.newestFirst() {
		if l.view.Polled && l.done == nil && !present[l.view.ID] {
			s.endPolled(l, at, event.StateFinished, unknownReason)
		}
	}
}

func (s *state) applySlot(at event.Time, p *event.Slot) {
	l := s.requests.byID[p.Request]
	if l == nil {
		if l = s.requests.add(p.Request); l == nil { // an engine has far fewer slots than MaxOpen
			return
		}
		l.view.Polled, l.missedStart = true, true
		l.view.Enqueued, l.view.Dispatched, l.view.Targets = at, at, s.targets
	}
	v := &l.view
	if !v.Polled || l.done != nil {
		return
	}
	l.lastView = nil
	s.requests.setState(l, event.StateDispatched)
	v.Slot, v.Model = max(p.Slot, 0), clip(p.Model, MaxLine)
	v.PromptTokens, v.PromptDone, v.CachedTokens = clampTokens(p.Prompt), clampTokens(p.Processed), clampTokens(p.Cached)
	v.MaxTokens = clampTokens(p.Max)
	if n := clampTokens(p.Generated); n > v.Generated {
		if v.First == 0 {
			v.First, l.tokensWhenSeen = at, n
		}
		v.Generated, v.Last = n, at
	}
	switch {
	case p.End == event.StateCancelled:
		s.endPolled(l, at, p.End, "cancelled")
	case p.End.Final():
		s.endPolled(l, at, p.End, unknownReason)
	}
}

// clampTokens clamps a number of tokens of one request to 0..event.MaxTokens.
func clampTokens(n int) int { return min(max(n, 0), event.MaxTokens) }

// endPolled ends a request that no slot holds any more.
func (s *state) endPolled(l *liveRequest, at event.Time, end event.State, reason string) {
	v := &l.view
	s.requests.setState(l, end)
	v.Reason, v.Closed = reason, max(at, v.Enqueued)
	s.counts.Polled++
	if end == event.StateCancelled {
		s.counts.PolledCut++
	}
	l.measure(s.settings())
	s.markEnded(l, l.copy())
	s.recordEnd(l.done)
	if s.onRequest != nil {
		s.onRequest(l.done)
	}
}

// minPolledTime is how long a polled request must be observed before its decode rate is shown. Of requests that last
// about one polling interval only the slow ones are seen twice, which would bias the rate.
const minPolledTime = event.Time(700 * time.Millisecond)

// measurePolled measures a request that was seen in polled slots. Only its decode rate is known: the tokens generated
// between the first and the last poll.
func measurePolled(l *liveRequest) {
	v := &l.view
	missing := event.Absent(event.NotReported)
	v.STIL, v.TTFT, v.Prefill, v.PrefillRate, v.E2EL, v.TPS, v.Overall = missing, missing, missing, missing, missing, missing, missing
	v.Decode, v.TPOT, v.DecodeRate = missing, event.Absent(event.NotYet), event.Absent(event.NotYet)
	if n, took := v.Generated-l.tokensWhenSeen, v.Last-v.First; n > 0 && took >= minPolledTime {
		v.DecodeRate = event.DerivedValue(float64(n) / (float64(took) / second))
		v.TPOT = event.DerivedValue(1 / v.DecodeRate.V)
	}
}
