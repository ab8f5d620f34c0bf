package socket

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// encode appends the lines of the taken events. Consecutive tokens, and the forward passes that made them, share one
// line each.
func (r *reader) encode() {
	for i := 0; i < len(r.events); {
		n := r.gather(r.events[i:])
		if n == 0 {
			r.count(r.one(&r.events[i]), &r.events[i])
			n = 1
		}
		i += n
	}
	clear(r.events)
}

// gather appends the lines of the tokens and steps at the start of list and returns their number.
func (r *reader) gather(list []event.Event) int {
	r.steps, r.tokens = r.steps[:0], r.tokens[:0]
	n := 0
	for i := range list {
		e := &list[i]
		if e.Kind == event.KindToken {
			r.tokens = append(r.tokens, *e)
		} else if e.Kind == event.KindStep && e.Data == nil {
			r.steps = append(r.steps, *e)
		} else {
			break
		}
		n++
	}
	r.batch(r.steps, wire.AppendSteps)
	r.batch(r.tokens, func(dst []byte, tokens []event.Event) ([]byte, error) { return wire.AppendTokens(dst, tokens, r.steps) })
	clear(r.steps)
	clear(r.tokens)
	return n
}

// batch appends one line for all events, or one line each if together they are too long.
func (r *reader) batch(list []event.Event, write func([]byte, []event.Event) ([]byte, error)) {
	if len(list) == 0 {
		return
	}
	out, err := write(r.out, list)
	if err == nil {
		r.out = append(out, '\n')
		r.sent += uint64(len(list))
		return
	}
	for i := range list {
		r.count(r.one(&list[i]), &list[i])
	}
}

// one appends the line of one event. It returns false if nothing was written: counts that newer ones replaced have no
// data.
func (r *reader) one(e *event.Event) (written bool) {
	if p, ok := e.Data.(*event.EngineInfo); ok {
		engine := *p
		engine.Caps = r.offers(p.Caps)
		copied := *e
		copied.Data = &engine
		e = &copied
	}
	out, err := wire.Append(r.out, e)
	if err != nil {
		return false
	}
	r.out = append(out, '\n')
	return true
}

// count counts an event as sent, or as dropped if it cannot be encoded.
func (r *reader) count(written bool, e *event.Event) {
	switch {
	case written:
		r.sent++
	case !cumulative(e.Kind) || e.Data != nil:
		r.lost[e.Kind]++
	}
}

// maxAsked limits the requests whose text a reader gets, 16 bytes each. Beyond it the oldest are sent without text.
const maxAsked = 1 << 14

// textRequests is the set of requests that a reader started with text.
type textRequests struct {
	sync.Mutex
	ids map[event.RequestID]struct{}
}

// add adds a request. The caller holds the mutex.
func (a *textRequests) add(id event.RequestID) {
	if a.ids == nil {
		a.ids = make(map[event.RequestID]struct{})
	}
	if len(a.ids) >= maxAsked {
		oldest := id
		for other := range a.ids {
			oldest = min(oldest, other)
		}
		delete(a.ids, oldest)
	}
	a.ids[id] = struct{}{}
}

// has reports whether a request is in the set.
func (a *textRequests) has(id event.RequestID) bool {
	a.Lock()
	defer a.Unlock()
	_, ok := a.ids[id]
	return ok
}

// end removes a completed request.
func (a *textRequests) end(id event.RequestID) {
	a.Lock()
	defer a.Unlock()
	delete(a.ids, id)
}

// withhold removes text that this reader did not request from events about to be written to it. The events are the
// reader's own copies.
func (r *reader) withhold(list []event.Event) {
	if r.server.opt.Text {
		return
	}
	for i := range list {
		switch e := &list[i]; {
		case e.Kind == event.KindRequest && e.State.Final():
			r.withText.end(e.Req)
		case e.HasText() && !r.withText.has(e.Req):
			e.DropText()
		}
	}
}
