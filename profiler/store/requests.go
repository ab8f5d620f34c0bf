package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// openRequest returns the open request that an event changes; nil if it is not in the ring or has ended.
func (s *state) openRequest(id event.RequestID) *liveRequest {
	if l := s.requests.byID[id]; l != nil && l.done == nil {
		l.lastView = nil
		return l
	}
	return nil
}

// applyRequest advances a request through its states. An unknown request may start in any state but a final one, since
// the first event may have been dropped. Events after the end are ignored.
func (s *state) applyRequest(e *event.Event) {
	if e.Req == 0 || e.State == event.StateNone || e.State >= event.NumStates {
		return
	}
	l := s.requests.byID[e.Req]
	if l == nil {
		if e.State.Final() {
			s.endUntracked(e)
			return
		}
		if s.requests.overflow.update(e.Req, e.State, 0) {
			return
		}
		if l = s.beginRequest(e); l == nil {
			return
		}
	}
	if l.done != nil || e.State < l.view.State {
		return
	}
	l.lastView = nil
	countBusy(s, e.At)
	state := e.State
	if l.view.idle { // it runs, though the engine does not say so
		state = max(state, event.StateDispatched)
	}
	s.requests.setState(l, state)
	switch {
	case e.State == event.StateDispatched && l.view.First != 0 && e.At > l.view.First: // not what the first token waited for
	case e.State == event.StateDispatched:
		l.view.Dispatched = max(e.At, l.view.Enqueued)
		s.routing.markDispatch(e.Req, s.requests.count(event.StateDispatched)-1)
	case e.State.Final():
		s.finishRequest(l, e.At, outcomeOf(e))
	}
}

// beginRequest adds a request to the ring. If MaxOpen are open, it only counts the request and returns nil.
func (s *state) beginRequest(e *event.Event) *liveRequest {
	p, _ := e.Data.(*event.Request)
	l := s.requests.add(e.Req)
	if l == nil {
		if (p == nil || !excluded(p.Probe, s.engine.Caps)) && s.requests.overflow.begin(e.Req, e.State) {
			s.counts.OmittedRequests++
			s.counts.Unmeasured++
		}
		return nil
	}
	v := &l.view
	l.predatesClock = e.At == beforeClock
	l.missedStart = l.predatesClock || e.State != event.StateQueued
	v.MissedStart = l.missedStart
	v.Enqueued, v.Targets = e.At, s.targets
	v.AnyCached = true // until its end
	v.idle, l.foundCold = foundIdle(s, e), findCold(s, e, p)
	if p != nil {
		v.Group, v.Label, v.Prompt = clip(p.Group, MaxLine), clip(p.Label, MaxLine), clip(p.Prompt, s.requests.bound(MaxText))
		v.Omitted.Prompt = len(v.Prompt) < len(p.Prompt)
		l.foundCold = l.foundCold || p.DeviceStart
		v.MaxTokens, v.Cold, v.DeviceStart, v.Probe = max(p.MaxTokens, 0), p.Cold || l.foundCold, p.DeviceStart, p.Probe
		v.PromptTokens = clampTokens(p.PromptTokens)
		v.RTT = event.Absent(event.NotReported)
		if p.RTT > 0 {
			v.RTT = seconds(p.RTT)
		}
		v.Retrospective, v.Model, v.Chat, v.ColdLater = p.Retrospective, clip(p.Model, MaxLine), p.Chat, p.ColdLater
	}
	return l
}

// endUntracked counts the end of a request that is not in the ring: its start was dropped, or it exceeded MaxOpen.
func (s *state) endUntracked(e *event.Event) {
	if s.requests.evicted.has(e.Req) {
		return
	}
	counted := s.requests.overflow.remove(e.Req)
	o := outcomeOf(e)
	if o == nil {
		o = new(event.Outcome)
	}
	if missed := max(o.Generated-counted, 0); counted >= 0 { // as of one whose tokens came as a whole
		s.counts.GeneratedTokens += uint64(missed)
		s.rates.addGenerated(e.At, missed)
	}
	s.counts.PromptTokens += uint64(o.Prompt)
	s.counts.addEnd(e.State, o)
	if e.State == event.StateFinished {
		s.rates.addFinished(e.At, 1)
	}
	s.requests.evicted.add(e.Req)
}

// settings returns what the metrics of requests depend on besides their own events. The load of a model that is reported
// without its length, or not yet, is that of its stages.
func (s *state) settings() settings {
	with := settings{caps: s.engine.Caps}
	switch {
	case s.loaded != nil:
		with.load = *s.loaded
	case len(s.load) > 0:
		with.load = loadOf(s.load)
	}
	return with
}

// excluded is Snapshot.Excluded while events are applied.
func (s *state) excluded(l *liveRequest) bool { return excluded(l.view.Probe, s.engine.Caps) }

// countGenerated counts k tokens that were generated in this session.
func (s *state) countGenerated(at event.Time, k int) {
	s.counts.GeneratedTokens += uint64(k)
	s.machine.gaps.tokens += uint64(k)
	s.rates.addGenerated(at, k)
}

// outcomeOf returns how a request ended, with token counts clamped so that sums cannot overflow; nil if unknown.
func outcomeOf(e *event.Event) *event.Outcome {
	p, ok := e.Data.(*event.Outcome)
	if !ok || p == nil {
		return nil
	}
	o := *p
	for _, n := range []*int{&o.Prompt, &o.Cached, &o.Padding, &o.Generated, &o.Later, &o.Reasoning, &o.Answered, &o.Drafted, &o.Accepted} {
		*n = clampTokens(*n)
	}
	return &o
}

// finishRequest closes a request and records it in the session's distributions.
func (s *state) finishRequest(l *liveRequest, at event.Time, o *event.Outcome) {
	v := &l.view
	v.Closed = max(at, v.Last, v.Enqueued)
	if o != nil {
		v.Reason = clip(o.Reason, MaxLine)
		if o.Prompt > 0 {
			v.PromptTokens = o.Prompt
		}
		if o.Cached > v.PromptTokens && v.PromptTokens > 0 { // not a part of the prompt
			o.Cached, o.AnyCached = 0, true
		}
		v.Torn, v.AnyEnd = o.Torn, o.AnyEnd
		v.AtLeast = o.AtLeast || l.holed && o.Generated < v.Generated // what is missing is in no count
		v.CachedTokens, v.PadTokens, v.Reuse, v.Asked = o.Cached, o.Padding, o.Reuse, o.Asked
		if v.AnyCached = o.AnyCached || v.PromptTokens == 0; !v.AnyCached {
			v.Computed = max(v.PromptTokens-v.CachedTokens, 0)
		}
		v.Reuse.Place = clip(v.Reuse.Place, MaxLine)
		if l.later = int32(o.Later); o.AnyLater {
			l.later = -1
		}
		l.countThinking(o)
		v.Drafted, v.Accepted = int32(o.Drafted), int32(min(o.Accepted, o.Drafted))
		if missed := o.Generated - v.Generated; missed > 0 { // their events were dropped
			v.Generated += missed
			if !s.excluded(l) && !(l.missedStart && o.Torn) { // of those before the session none counts
				s.counts.GeneratedTokens += uint64(missed)
			}
			s.addUnstampedTokens(l, o.Decode, missed)
		}
	}
	if !s.excluded(l) {
		l.countPrompt(&s.counts)
		s.counts.AtLeast = s.counts.AtLeast || v.AtLeast
		s.counts.addEnd(v.State, &event.Outcome{Prompt: v.PromptTokens, Cached: v.CachedTokens, Padding: v.PadTokens, AnyCached: v.AnyCached, Generated: v.Generated})
		if v.State == event.StateFinished {
			s.rates.addFinished(v.Closed, 1)
		}
	}
	if v.First == 0 {
		s.settleWaits(v, v.Closed)
	} else if !s.engine.Caps.Has(event.CapQueue) { // when it began may be known only now
		s.settleWaits(v, v.First)
	}
	l.endThinking(v.Last, s.requests.bound(MaxSpans))
	settled := v.ColdLater
	if settled {
		v.ColdLater, v.Cold = false, o != nil && o.Cold
	}
	l.measure(s.settings())
	if v.First != 0 && !s.engine.Caps.Has(event.CapQueue) {
		s.explainTTFTAgain(l)
	}
	if !s.excluded(l) {
		derivePrompt(s, l)
		deriveResidency(s, v)
	}
	if settled && v.First != 0 && !s.excluded(l) {
		s.latency.recordFirst(v, v.Closed)
	}
	done := l.copy()
	// done lives long: drop the spare capacity of the shared slices.
	done.Gaps, done.Stalls, done.Late = slices.Clone(done.Gaps), slices.Clone(done.Stalls), slices.Clone(done.Late)
	done.Spans = slices.Clone(done.Spans)
	if n := len(l.tokens); cap(l.tokens) > n+n/4 { // otherwise earlier snapshots share it
		done.Tokens = slices.Clone(done.Tokens)
	}
	s.markEnded(l, done)
	if !s.excluded(l) {
		s.recordEnd(done)
	}
	if s.onRequest != nil {
		s.onRequest(done)
	}
}

// markEnded replaces the working state of a request by its final view.
func (s *state) markEnded(l *liveRequest, done *Request) {
	l.view, l.done, l.lastView, l.itl, l.passGaps, l.early, l.tokens, l.text = *done, done, nil, nil, nil, nil, nil, nil
	if s.requests.markEnded(l) {
		s.counts.OmittedRequests++
	}
}

// recordEnd adds a request that has ended to the session's distributions and groups.
func (s *state) recordEnd(r *Request) {
	if r.Prefill.OK() && r.Computed > 0 {
		s.causes.totals().prompts.add(nanos(r.Prefill), r.Computed)
	}
	s.latency.recordEnd(r)
	s.counts.addToGroup(r)
}

// addUnstampedTokens adds tokens that were not reported one by one; ns is the time from the first token to the last.
// Their gaps are unknown.
func (s *state) addUnstampedTokens(l *liveRequest, ns int64, missed int) {
	v := &l.view
	if v.First == 0 && !s.excluded(l) { // they came as a whole
		s.rates.addGenerated(v.Closed, missed)
	}
	if ns <= 0 || v.First == 0 || v.Last != v.First {
		return
	}
	v.Last = max(v.First, v.First+event.Time(min(ns, int64(event.MaxRequestTime))))
	v.Closed = max(v.Closed, v.Last)
	if !s.excluded(l) {
		s.rates.addGenerated(v.Last, missed)
	}
}

// applyStage adds a stage to its request, or to the model load.
func (s *state) applyStage(e *event.Event) {
	if e.Stage >= event.NumStages || e.Stage == event.StageNone && e.Text == "" {
		return
	}
	if e.Req == 0 {
		// Ignore engine-specific stages while the engine runs: it may time what it likes.
		if e.Stage != event.StageNone || s.engine.State == event.EngineLoading {
			s.applyLoad(e)
		}
		return
	}
	l := s.openRequest(e.Req)
	if l == nil {
		return
	}
	l.addStage(e)
	if e.Stage == event.StagePace {
		l.pacedSinceToken = event.Add(l.pacedSinceToken, e.Dur)
		return
	}
	if e.Layer >= 0 {
		l.addLayer(int(e.Layer), e.Stage, time.Duration(e.Dur), s.requests.bound(MaxLayers))
		return
	}
	if e.At != beforeClock {
		l.addSpan(e, s.requests.bound(MaxSpans))
	}
	if c, _ := e.Data.(*event.Calls); c != nil {
		l.view.Calls = c
	}
	if e.Stage == event.StageNone || e.Stage > event.StageSend || e.Stage == event.StageSend && l.view.First != 0 { // part of "other"; of a component; too late for TTFT
		return
	}
	l.stageTime[e.Stage] = event.Add(l.stageTime[e.Stage], e.Dur)
	if n := int(e.N); n > l.view.PromptTokens && (e.Stage == event.StagePrompt || e.Stage == event.StageTokenize) {
		l.view.PromptTokens, l.promptStaged = n, e.Stage == event.StagePrompt
	}
	if e.Stage == event.StagePrompt {
		l.view.Computed = clampTokens(l.view.Computed + max(int(e.N), 0))
	}
	if e.Stage == event.StagePrompt && e.At != beforeClock && !s.excluded(l) {
		s.rates.addPrompt(e.At, e.Dur, int(e.N))
		if !s.rates.stepsHavePrompts {
			s.causes.keepPass(e.At, e.Dur, e.Req)
		}
	}
}

// settleWaits divides what a request waited before its first token, or its end.
func (s *state) settleWaits(r *Request, at event.Time) {
	others := func(yield func(*Request) bool) {
		for l := range s.requests.newestFirst() {
			v := &l.view
			if l.done != nil {
				v = l.done
			}
			if !yield(v) {
				return
			}
		}
	}
	if r.handed = 0; !s.engine.Caps.Has(event.CapQueue) && r.First != 0 && r.Dispatched == 0 && !r.Retrospective {
		r.handed = handedOver(r, others, s.engine.Slots)
	}
	r.Waits = waits(r, others, s.load, s.engine, at)
}
