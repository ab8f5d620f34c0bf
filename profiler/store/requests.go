package store

import (
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// liveRequest is a request of the ring with the state that its metrics are computed from.
type liveRequest struct {
	view            Request                // everything received so far
	done            *Request               // final view; nil until the request has ended; shared by all snapshots
	lastView        *Request               // the latest view that snapshots share; nil if outdated
	itl             *metric.Sparse         // gaps; nil once the request has ended, like text
	stageTime       [event.NumStages]int64 // ns per stage
	pacedSinceToken int64                  // ns of pacing since the last token
	pacedTotal      int64                  // ns of pacing between tokens
	missedStart     bool                   // its start was not received: there are no times before Dispatched or First
	predatesClock   bool                   // it started before the clock's epoch, see beforeClock
	text            []byte
	slim            *Request // done without per-token data; nil until needed
	tokensWhenSeen  int      // of a polled request: tokens generated when it was first seen generating

	detailBytes int // size of the kept tokens' detail, see MaxDetail

	older, newer *liveRequest // neighbours in the ring

	tallyOwner            *tokenPicks // what kindTally and groupTally belong to
	kindTally, groupTally *tally
}

// slimCopy returns an ended request without per-token data.
func (l *liveRequest) slimCopy() *Request {
	if l.slim == nil {
		v := *l.done
		v.Slim, v.Layers, v.Gaps, v.Tokens, v.Text, v.Prompt = true, nil, nil, nil, "", ""
		l.slim = &v
	}
	return l.slim
}

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
			s.beginOverflow(e)
			return
		}
	}
	if l.done != nil || e.State < l.view.State {
		return
	}
	l.lastView = nil
	s.requests.setState(l, e.State)
	switch {
	case e.State == event.StateDispatched:
		l.view.Dispatched = max(e.At, l.view.Enqueued)
		s.markDispatch(l)
	case e.State.Final():
		s.finishRequest(l, e.At, outcomeOf(e))
	}
}

// beginRequest adds a request to the ring; nil if MaxOpen are open.
func (s *state) beginRequest(e *event.Event) *liveRequest {
	l := s.requests.add(e.Req)
	if l == nil {
		return nil
	}
	v := &l.view
	l.predatesClock = e.At == beforeClock
	l.missedStart = l.predatesClock || e.State != event.StateQueued
	v.MissedStart = l.missedStart
	v.Enqueued, v.Targets = e.At, s.targets
	if p, ok := e.Data.(*event.Request); ok && p != nil {
		v.Group, v.Label, v.Prompt = clip(p.Group, MaxLine), clip(p.Label, MaxLine), clip(p.Prompt, s.requests.bound(MaxText))
		v.Omitted.Prompt = len(v.Prompt) < len(p.Prompt)
		v.MaxTokens, v.Cold, v.Probe = max(p.MaxTokens, 0), p.Cold, p.Probe
		v.Retrospective = p.Retrospective
	}
	return l
}

// countEnd counts a request that ended.
func (s *state) countEnd(how event.State) {
	switch how {
	case event.StateFinished:
		s.counts.Finished++
	case event.StateCancelled:
		s.counts.Cancelled++
	case event.StateFailed:
		s.counts.Failed++
	}
}

// outcomeOf returns how a request ended, with token counts clamped so that sums cannot overflow; nil if unknown.
func outcomeOf(e *event.Event) *event.Outcome {
	p, ok := e.Data.(*event.Outcome)
	if !ok || p == nil {
		return nil
	}
	o := *p
	for _, n := range []*int{&o.Prompt, &o.Cached, &o.Padding, &o.Generated} {
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
		v.CachedTokens, v.PadTokens = o.Cached, o.Padding
		if missed := o.Generated - v.Generated; missed > 0 { // their events were dropped
			v.Generated += missed
			if !s.excluded(l) {
				s.counts.GeneratedTokens += uint64(missed)
			}
			s.addUnstampedTokens(l, o.Decode, missed)
		}
	}
	if !s.excluded(l) {
		s.countEnd(v.State)
		s.counts.PromptTokens += uint64(v.PromptTokens)
		s.counts.CachedTokens += uint64(v.CachedTokens)
		s.counts.PadTokens += uint64(v.PadTokens)
	}
	s.measure(l)
	done := l.copy()
	// done lives long: drop the spare capacity of the shared slices.
	done.Gaps, done.Stalls = slices.Clone(done.Gaps), slices.Clone(done.Stalls)
	done.Spans, done.Tokens = slices.Clone(done.Spans), slices.Clone(done.Tokens)
	s.markEnded(l, done)
	if !s.excluded(l) {
		s.recordRequest(done)
	}
	if s.onRequest != nil {
		s.onRequest(done)
	}
}

// markEnded replaces the working state of a request by its final view.
func (s *state) markEnded(l *liveRequest, done *Request) {
	l.done, l.lastView, l.itl, l.text = done, nil, nil, nil
	if s.requests.markEnded(l) {
		s.counts.OmittedRequests++
	}
}

// addUnstampedTokens adds tokens that were not reported one by one; ns is the time from the first token to the last.
// Their gaps are unknown.
func (s *state) addUnstampedTokens(l *liveRequest, ns int64, missed int) {
	v := &l.view
	if ns <= 0 || v.First == 0 || v.Last != v.First {
		return
	}
	v.Last = max(v.First, v.First+event.Time(min(ns, int64(event.MaxRequestTime))))
	v.Closed = max(v.Closed, v.Last)
	if !s.excluded(l) {
		s.rates.addGenerated(v.Last, missed)
	}
}

// copy returns the current view. It shares only lists that grow by appending.
func (l *liveRequest) copy() *Request {
	v := l.view
	v.Layers = slices.Clone(v.Layers)
	v.Gaps, v.Stalls = slices.Clip(v.Gaps), slices.Clip(v.Stalls)
	v.Spans, v.Tokens = slices.Clip(v.Spans), slices.Clip(v.Tokens)
	v.Text = string(l.text)
	return &v
}

// clip truncates text to n bytes and releases the rest.
func clip(text string, n int) string {
	if len(text) > n {
		return strings.Clone(text[:n])
	}
	return text
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
	if e.Stage == event.StageNone { // engine-specific stage: part of "other"
		return
	}
	l.stageTime[e.Stage] = event.Add(l.stageTime[e.Stage], e.Dur)
	if e.Stage == event.StagePrompt || e.Stage == event.StageTokenize {
		l.view.PromptTokens = max(l.view.PromptTokens, int(e.N))
	}
	if e.Stage == event.StagePrompt && e.At != beforeClock && !s.excluded(l) {
		s.rates.addPrompt(e.At, e.Dur, int(e.N))
	}
}

// addSpan adds a stage to the request's timeline, unless it holds limit stages already.
func (l *liveRequest) addSpan(e *event.Event, limit int) {
	if len(l.view.Spans) >= limit {
		l.view.Omitted.Spans++
		return
	}
	l.view.Spans = append(l.view.Spans, newSpan(e))
}

func newSpan(e *event.Event) StageSpan {
	return StageSpan{
		Stage: e.Stage, Name: clip(e.Text, MaxName), Layer: -1, Start: e.At - event.Time(e.Dur), End: e.At, Tokens: max(int(e.N), 0),
	}
}

// maxLayerTime clamps the time of one part of a layer, so that sums over layers do not overflow.
const maxLayerTime = time.Duration(maxDur)

// addLayer adds the prompt processing time of one layer. If the model has more than limit layers, it drops all of them:
// a part would mislead.
func (l *liveRequest) addLayer(i int, stage event.Stage, dur time.Duration, limit int) {
	if i >= limit {
		l.view.Layers, l.view.Omitted.Layers = nil, true
	}
	if l.view.Omitted.Layers {
		return
	}
	for len(l.view.Layers) <= i {
		l.view.Layers = append(l.view.Layers, LayerPart{})
	}
	p := &l.view.Layers[i]
	add := func(sum *time.Duration) { *sum = min(*sum+dur, maxLayerTime) }
	switch stage {
	case event.StageAttention:
		add(&p.Attention)
	case event.StageRouter:
		add(&p.Router)
	case event.StageExperts:
		add(&p.Experts)
	}
}

// applyLoad adds a stage to the waterfall of the last model load.
func (s *state) applyLoad(e *event.Event) {
	s.load = event.AddLoadStage(s.load, newSpan(e), 2*int(event.NumStages), func(p *StageSpan) event.LoadStage {
		return event.LoadStage{Stage: p.Stage, Name: p.Name, Begin: p.Start, End: p.End}
	})
}
