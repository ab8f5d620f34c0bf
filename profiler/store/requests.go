package store

import (
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// live is a request with what its view is computed from.
type live struct {
	view  Request                // what is known so far
	done  *Request               // set once the request has ended; shared by all snapshots
	itl   *metric.Histogram      // nil once it has ended, and so is text
	named [event.NumStages]int64 // ns by stage
	paced int64                  // ns paced since the last token
	waits int64                  // ns paced between tokens
	late  bool                   // its beginning was lost: nothing is known of the time before Dispatched or First
	old   bool                   // it began before the clock, and so did what it is late for
	text  []byte
	slim  *Request // of done, once it has been needed
	seen  int      // tokens of a polled request when it was first seen to generate

	detail int // bytes of the tokens that are kept, see MaxDetail

	of          *told // where kind and group belong to
	kind, group *tally
}

// ring holds the requests kept, oldest first.
type ring struct {
	list []*live
	done int // of list, those that have ended
	byID map[event.RequestID]*live
	past []*Request // those that have left the list; shared with snapshots, so only ever appended to
	gone gone
}

// add makes room for a request by forgetting the oldest one that has ended, or else the oldest.
func (r *ring) add(id event.RequestID) (l *live, forgot bool) {
	if r.byID == nil {
		r.byID = make(map[event.RequestID]*live, MaxRequests)
	}
	if len(r.list) >= MaxRequests {
		i := 0
		if r.done > 0 {
			i = slices.IndexFunc(r.list, func(l *live) bool { return l.done != nil })
		}
		oldest := r.list[i]
		delete(r.byID, oldest.view.ID)
		if oldest.done != nil {
			r.done--
			r.retire(oldest)
			r.gone.add(oldest.view.ID, allCounted)
		} else {
			r.gone.add(oldest.view.ID, oldest.view.Generated)
		}
		r.list = slices.Delete(r.list, i, i+1)
		forgot = true
	}
	l = &live{view: Request{ID: id, Slot: -1}, itl: new(metric.Histogram)}
	r.list = append(r.list, l)
	r.byID[id] = l
	return l, forgot
}

// retire keeps of a request that leaves the ring what is not per token.
func (r *ring) retire(ended *live) {
	if len(r.past) >= MaxPast {
		r.past = append(make([]*Request, 0, MaxPast), r.past[MaxPast/4:]...)
	}
	r.past = append(r.past, ended.slimmed())
}

// slimmed is a request that has ended without what is per token.
func (l *live) slimmed() *Request {
	if l.slim == nil {
		v := *l.done
		v.Slim, v.Layers, v.Gaps, v.Tokens, v.Text, v.Prompt = true, nil, nil, nil, "", ""
		l.slim = &v
	}
	return l.slim
}

// open is the request that an event belongs to, nil if it is not kept or has ended.
func (s *state) open(id event.RequestID) *live {
	if l := s.requests.byID[id]; l != nil && l.done == nil {
		return l
	}
	return nil
}

// applyRequest follows a request through its states. One that is not kept begins with any state but a final one, since its
// beginning may have been lost; what comes for one that has ended is passed over.
func (s *state) applyRequest(e *event.Event) {
	if e.Req == 0 || e.State == event.StateNone || e.State >= event.NumStates {
		return
	}
	l := s.requests.byID[e.Req]
	if l == nil {
		if e.State.Final() {
			s.endUnseen(e)
			return
		}
		l = s.begin(e)
	}
	if l.done != nil || e.State < l.view.State {
		return
	}
	l.view.State = e.State
	switch {
	case e.State == event.StateDispatched:
		l.view.Dispatched = max(e.At, l.view.Enqueued)
		s.dispatched(l)
	case e.State.Final():
		o, _ := e.Data.(*event.Outcome)
		s.finish(l, e.At, o)
	}
}

func (s *state) begin(e *event.Event) *live {
	l, forgot := s.requests.add(e.Req)
	if forgot {
		s.counts.MoreRequests++
	}
	v := &l.view
	l.old = e.At == before
	l.late = l.old || e.State != event.StateQueued
	v.Late = l.late
	v.Enqueued, v.Targets = e.At, s.targets
	if p, ok := e.Data.(*event.Request); ok && p != nil {
		v.Group, v.Label, v.Prompt = clip(p.Group, MaxLine), clip(p.Label, MaxLine), clip(p.Prompt, MaxText)
		v.MaxTokens, v.Cold, v.Probe = max(p.MaxTokens, 0), p.Cold, p.Probe
		v.Told = p.Told
	}
	return l
}

// end counts a request that ended.
func (s *state) end(how event.State) {
	switch how {
	case event.StateFinished:
		s.counts.Finished++
	case event.StateCancelled:
		s.counts.Cancelled++
	case event.StateFailed:
		s.counts.Failed++
	}
}

// finish closes a request and records it in the session's distributions.
func (s *state) finish(l *live, at event.Time, o *event.Outcome) {
	v := &l.view
	v.Closed = max(at, v.Last, v.Enqueued)
	if o != nil {
		v.Reason = clip(o.Reason, MaxLine)
		if o.Prompt > 0 {
			v.PromptTokens = o.Prompt
		}
		v.CachedTokens, v.PadTokens = max(o.Cached, 0), max(o.Padding, 0)
		if missed := o.Generated - v.Generated; missed > 0 { // their events were lost
			v.Generated += missed
			if !s.aside(l) {
				s.counts.GeneratedTokens += uint64(missed)
			}
			s.decoded(l, o.Decode, missed)
		}
	}
	if !s.aside(l) {
		s.end(v.State)
		s.counts.PromptTokens += uint64(v.PromptTokens)
		s.counts.CachedTokens += uint64(v.CachedTokens)
		s.counts.PadTokens += uint64(v.PadTokens)
	}
	s.measure(l)
	done := l.copy()
	// It is kept for long, and what it shares has room to grow.
	done.Gaps, done.Stalls, done.Spans, done.Tokens = slices.Clone(done.Gaps), slices.Clone(done.Stalls), slices.Clone(done.Spans), slices.Clone(done.Tokens)
	l.done, l.itl, l.text = done, nil, nil
	s.requests.done++
	if !s.aside(l) {
		s.recordRequest(done)
	}
	if s.onRequest != nil {
		s.onRequest(done)
	}
}

// decoded takes in tokens that were not told one by one, and how long they took after the first: the gaps between them are not known.
func (s *state) decoded(l *live, ns int64, missed int) {
	v := &l.view
	if ns <= 0 || v.First == 0 || v.Last != v.First {
		return
	}
	v.Last = max(v.First, v.First+event.Time(min(ns, maxDecode)))
	v.Closed = max(v.Closed, v.Last)
	if !s.aside(l) {
		s.rates.generated(v.Last, missed)
	}
}

// maxDecode bounds how long a request may have decoded.
const maxDecode = int64(24 * time.Hour)

// copy is the view as it stands, sharing nothing that will be written again: lists that only grow are shared.
func (l *live) copy() *Request {
	v := l.view
	v.Parts, v.Layers = slices.Clone(v.Parts), slices.Clone(v.Layers)
	v.Gaps, v.Stalls, v.Spans, v.Tokens = slices.Clip(v.Gaps), slices.Clip(v.Stalls), slices.Clip(v.Spans), slices.Clip(v.Tokens)
	v.Text = string(l.text)
	return &v
}

// clip cuts text, and keeps no more of it than that in memory.
func clip(text string, n int) string {
	if len(text) > n {
		return strings.Clone(text[:n])
	}
	return text
}

// applyStage adds a stage to the request it belongs to, or to the load of the model.
func (s *state) applyStage(e *event.Event) {
	if e.Stage >= event.NumStages || e.Stage == event.StageNone && e.Text == "" {
		return
	}
	if e.Req == 0 {
		if e.Stage != event.StageNone || s.engine.State == event.EngineLoading { // an engine may time what it likes while it runs
			s.applyLoad(e)
		}
		return
	}
	l := s.open(e.Req)
	if l == nil {
		return
	}
	if e.Stage == event.StagePace {
		l.paced += e.Dur
		return
	}
	if e.Layer >= 0 {
		l.layer(int(e.Layer), e.Stage, time.Duration(e.Dur))
		return
	}
	if e.At != before {
		l.span(e)
	}
	if e.Stage == event.StageNone { // a stage of the engine's own: part of "other"
		return
	}
	l.named[e.Stage] += e.Dur
	if e.Stage == event.StagePrompt || e.Stage == event.StageTokenize {
		l.view.PromptTokens = max(l.view.PromptTokens, int(e.N))
	}
	if e.Stage == event.StagePrompt && e.At != before && !s.aside(l) {
		s.rates.prompted(e.At, e.Dur, int(e.N))
	}
}

// span keeps where a stage lies on the time axis.
func (l *live) span(e *event.Event) {
	if len(l.view.Spans) < MaxSpans {
		l.view.Spans = append(l.view.Spans, spanOf(e))
	}
}

func spanOf(e *event.Event) Span {
	return Span{
		Stage: e.Stage, Name: clip(e.Text, MaxName), Layer: -1, Start: e.At - event.Time(e.Dur), End: e.At, Tokens: max(int(e.N), 0),
	}
}

// layer adds to the prompt processing of one layer.
func (l *live) layer(i int, stage event.Stage, dur time.Duration) {
	if i >= MaxLayers {
		return
	}
	for len(l.view.Layers) <= i {
		l.view.Layers = append(l.view.Layers, LayerPart{})
	}
	p := &l.view.Layers[i]
	switch stage {
	case event.StageAttention:
		p.Attention += dur
	case event.StageRouter:
		p.Router += dur
	case event.StageExperts:
		p.Experts += dur
	}
}

// applyLoad keeps the waterfall of the last model load.
func (s *state) applyLoad(e *event.Event) {
	s.load = event.KeepLoad(s.load, spanOf(e), 2*int(event.NumStages), func(p *Span) event.LoadStage {
		return event.LoadStage{Stage: p.Stage, Name: p.Name, Begin: p.Start, End: p.End}
	})
}
