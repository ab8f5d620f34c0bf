//go:build amd64 || arm64

package probe

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// begin begins a request in a sequence. One that began before the probes gets no number, and no events. Where requests come
// over connections, one whose connection or text is unknown gets no begin, since it was received earlier.
func (t *tracker) begin(s *sequence, x *share, at int64) *request {
	r := &request{cached: int(x.first), began: at}
	s.request = r
	source := t.matching(s, r.cached, x.tokens)
	if source == nil && len(x.tokens) == 1 && x.first > s.length {
		r.promptDone, x.decode = true, true
		t.emit(event.Event{Kind: event.KindLog, Text: "a request ran before its passes were seen: the rest of it is not measured"}, at)
		return r
	}
	t.lastID++
	r.id, r.anyCached = t.lastID, source == nil && x.first > s.length
	switch {
	case source != nil:
		t.arrive(r, source, at)
	case len(t.threads) == 0 && !r.anyCached:
		t.about(r, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: t.firstRequest()}, at)
	}
	t.about(r, event.Event{Kind: event.KindRequest, State: event.StateDispatched}, at)
	return r
}

// firstRequest returns the data of a request, of which the first one may start the device.
func (t *tracker) firstRequest() *event.Request {
	p := &event.Request{DeviceStart: t.starts}
	t.starts = false
	return p
}

// arrive emits what happened to a request before its first pass.
func (t *tracker) arrive(r *request, source *text, at int64) {
	r.text, r.tokens, r.reuse = len(source.tokens), source.tokens, t.prompts.Compare(source.tokens)
	queued := source.began
	if x := source.exchange; x != nil {
		r.exchange, x.matched, queued = x, true, x.received
	}
	t.about(r, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: t.firstRequest()}, queued)
	stage := func(s event.Stage, from, to int64, tokens int) {
		t.about(r, event.Event{Kind: event.KindStage, Stage: s, Dur: to - from, N: int32(tokens)}, to)
	}
	if r.exchange != nil {
		stage(event.StageReceive, queued, source.began, 0)
	}
	stage(event.StageTokenize, source.began, source.end, len(source.tokens))
	stage(event.StageQueue, source.end, at, 0)
}

// about emits an event about a request, unless the request has no number.
func (t *tracker) about(r *request, e event.Event, at int64) {
	if r.id == 0 {
		return
	}
	e.Req = r.id
	if r.held {
		e.At, e.Layer = t.time(at), -1
		r.events = append(r.events, e)
		return
	}
	t.emit(e, at)
}

// token emits a token of a request, which a row of a pass yielded.
func (t *tracker) token(r *request, f *forward, row int, id int32, at int64) {
	e := event.Event{Kind: event.KindToken, ID: id, N: 1, Index: int32(r.generated), Step: f.step, Picks: f.picksOf(row, t.experts)}
	if r.generated == 0 {
		t.hold(r, at)
	}
	t.about(r, e, at)
	r.generated++
	r.last, r.lastToken, r.active, r.computed = at, id, at, false
}

// end ends the request of a sequence at its last token.
func (t *tracker) end(s *sequence) {
	r := s.request
	if r == nil {
		return
	}
	s.request = nil
	if r.held {
		r.sent = 0 // the whole answer left at once
		t.release(r)
	}
	state, reason := event.StateFinished, ""
	if r.cancelled() {
		state, reason = event.StateCancelled, "cancelled"
	} else if r.generated > 0 && t.ends != nil && t.ends(r.lastToken) {
		reason = "stop"
	}
	t.about(r, event.Event{
		Kind: event.KindRequest, State: state,
		Data: &event.Outcome{Reason: reason, Prompt: r.prompt, Cached: r.cached, AnyCached: r.anyCached, Generated: r.generated, Reuse: r.reuse},
	}, max(r.last, r.active))
	if state == event.StateFinished && r.tokens != nil {
		t.prompts.Keep(r.id, r.tokens)
	}
}

// expire ends requests to which nothing happens, and forgets texts that no prompt has matched. It emits what is held or
// summed.
func (t *tracker) expire(now int64) {
	t.reportSpeculation(now)
	for _, c := range t.contexts {
		if c.returned() && now-c.pass.ended > syncWait { // nobody needs its results
			t.endPass(c)
		}
		if c.pass != nil {
			continue
		}
		for _, s := range c.sequences {
			switch r := s.request; {
			case r == nil:
			case now-r.active > idleEnd, r.embedded(c):
				t.end(s)
			case r.held && r.sent == 0 && now-r.firstAt > sendWait:
				t.release(r)
			}
		}
	}
	if t.unsent && now-t.expertsAt >= expertsEvery { // no pass follows
		t.emitExperts(now)
	}
	t.texts = slices.DeleteFunc(t.texts, func(x *text) bool { return now-x.end > textAge })
}

// remove removes positions from a sequence.
func (t *tracker) remove(d *probesRemoved) {
	from := max(d.From, 0)
	for _, c := range t.contexts {
		for seq, s := range c.sequences {
			switch {
			case d.Seq >= 0 && d.Seq != seq:
			case d.To >= 0: // the positions of others may change
				s.tokens = nil
			default:
				s.length = min(s.length, from)
				if d.Seq < 0 && s.length == 0 {
					t.end(s)
				}
			}
		}
	}
}

// endAll ends all requests.
func (t *tracker) endAll() {
	for _, c := range t.contexts {
		for _, s := range c.sequences {
			t.end(s)
		}
	}
}
