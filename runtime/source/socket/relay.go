package socket

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// relay passes an event of the engine on and tracks its requests. The client calls it from one goroutine.
func (r *Runner) relay(e event.Event) {
	switch e.Kind {
	case event.KindEngine:
		r.introduced(e)
	case event.KindRequest, event.KindToken, event.KindStage:
		r.follow(e)
	default:
		r.sink.Emit(e)
	}
}

// introduced passes an engine event on, and processes a change of the connection. When it breaks, running requests fail.
func (r *Runner) introduced(e event.Event) {
	info := *e.Data.(*event.EngineInfo)
	link := info.Remote.Link
	known := r.adapt == nil || r.adapt(&info)
	if known {
		e.Data = &info
		r.sink.Emit(e)
	}
	if !r.owner() && link.Down() {
		r.endAll(engine.Result{State: event.StateFailed, Err: ErrNotConnected, Outcome: event.Outcome{Reason: ErrNotConnected.Error()}}, 0, event.Tee{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known {
		r.info = info
	}
	if r.link = link; link == event.LinkConnected {
		r.lost = nil
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// follow passes an event of a request on, and ends its handle after the last one.
func (r *Runner) follow(e event.Event) {
	r.mu.Lock()
	q := r.update(&e)
	r.mu.Unlock()
	r.sink.Emit(e)
	if q == nil || e.Kind != event.KindRequest || !e.State.Final() {
		return
	}
	result := engine.Result{State: e.State, IDs: q.ids, Text: q.text.String()}
	if o, ok := e.Data.(*event.Outcome); ok && o != nil {
		result.Outcome = *o
	}
	if e.State == event.StateFailed {
		result.Err = ParseError(result.Reason)
	}
	q.end(result)
}

// update updates a request from an event; nil for one that is not tracked. An owner tracks all requests, others only those
// that they may have submitted. The caller holds mu.
func (r *Runner) update(e *event.Event) *request {
	q := r.live[e.Req]
	if q == nil {
		if e.Kind != event.KindRequest || r.pending == 0 && (e.State.Final() || !r.owner()) {
			return nil
		}
		q = r.add(e.Req)
	}
	switch {
	case q.ended:
		return nil
	case e.Kind == event.KindStage && e.Stage == event.StageTokenize:
		q.prompt = int(e.N)
	case e.Kind == event.KindToken:
		q.generated += int(max(e.N, 1))
		q.ids = append(q.ids, e.ID)
		q.text.WriteString(e.Text)
	case e.Kind == event.KindRequest && e.State.Final():
		q.ended = true
		if q.claimed || r.pending == 0 {
			delete(r.live, e.Req)
		}
	}
	return q
}

// add adds a request. The caller holds mu.
func (r *Runner) add(id event.RequestID) *request {
	q := &request{}
	q.handle, q.end = engine.NewHandle(id, func() { r.Cancel(id) })
	r.live[id] = q
	return q
}

// claim returns the handle of a request, which may have ended already.
func (r *Runner) claim(id event.RequestID) *engine.Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.live[id]
	if q == nil {
		q = r.add(id)
		if r.lost != nil {
			q.ended = true
			q.end(*r.lost)
		}
	}
	if q.claimed = true; q.ended {
		delete(r.live, id)
	}
	return q.handle
}

// await changes the number of calls of Submit that wait for an answer. When none does, requests that have ended, and those
// of others, need not be kept.
func (r *Runner) await(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending += more; r.pending > 0 {
		return
	}
	for id, q := range r.live {
		if q.ended || !q.claimed && !r.owner() {
			delete(r.live, id)
		}
	}
}
