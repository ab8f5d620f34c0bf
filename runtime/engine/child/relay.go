package child

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// relay forwards the child's events as those of an engine in this process, and tracks its requests.
type relay struct {
	name   string                // name of the process in messages
	cancel func(event.RequestID) // cancels a request

	broken chan struct{} // closed when the connection has ended
	once   sync.Once

	mu          sync.Mutex // guards the fields below
	sink        event.Sink
	onConnect   func() // called once, when connected
	engine      event.EngineInfo
	link        event.Link
	live        map[event.RequestID]*request
	pending     int            // calls of Submit without an answer yet
	finalResult *engine.Result // result of requests that can no longer end by themselves; nil while the process is connected
}

// request is a request that has not ended, or whose handle Submit has not returned yet.
type request struct {
	handle  *engine.Handle
	end     func(engine.Result)
	claimed bool // Submit has returned the handle
	ended   bool

	prompt, generated int
	ids               []int32
	text              strings.Builder
}

func newRelay(name string, cancel func(event.RequestID)) *relay {
	return &relay{name: name, cancel: cancel, broken: make(chan struct{}), live: make(map[event.RequestID]*request)}
}

// begin sets the sink and the initial description of the engine.
func (r *relay) begin(sink event.Sink, linked func(), engine event.EngineInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink, r.onConnect, r.engine = sink, linked, engine
}

// Emit implements event.Sink. The client calls it from one goroutine.
func (r *relay) Emit(e event.Event) {
	switch e.Kind {
	case event.KindEngine:
		if e = r.adapt(e); e.Data == nil {
			return
		}
	case event.KindRequest, event.KindToken, event.KindStage:
		if e.Req != 0 {
			r.follow(e)
			return
		}
	}
	r.sink.Emit(e)
}

// adapt rewrites an engine event of the child as one of this process. The caller drops an event without Data.
func (r *relay) adapt(e event.Event) event.Event {
	engine := *e.Data.(*event.EngineInfo)
	r.mu.Lock()
	defer r.mu.Unlock()
	remote := engine.Remote
	r.link = remote.Link
	engine.Remote = event.Remote{Missed: remote.Missed, Malformed: remote.Malformed} // losses are always shown
	switch remote.Link {
	case event.LinkConnected:
		if r.onConnect != nil {
			r.onConnect()
			r.onConnect = nil
		}
		r.engine = engine
	case event.LinkStale:
		r.engine = engine
		engine.Remote.Link, engine.Remote.Since, engine.Remote.Address = remote.Link, remote.Since, r.name
	default:
		r.once.Do(func() { close(r.broken) })
		return event.Event{}
	}
	e.Data = &engine
	return e
}

// follow forwards an event of a request, and ends its handle after the last one.
func (r *relay) follow(e event.Event) {
	r.mu.Lock()
	q := r.update(&e)
	r.mu.Unlock()
	r.sink.Emit(e)
	if q == nil || e.Kind != event.KindRequest || !e.State.Final() {
		return
	}
	result := engine.Result{State: e.State, IDs: q.ids, Text: q.text.String()}
	if o, ok := e.Data.(*event.Outcome); ok {
		result.Outcome = *o
	}
	if e.State == event.StateFailed {
		result.Err = parseError(result.Reason)
	}
	q.end(result)
}

// update updates a request from an event. The caller holds mu.
func (r *relay) update(e *event.Event) *request {
	q := r.live[e.Req]
	if q == nil {
		if e.Kind != event.KindRequest || e.State.Final() {
			return nil
		}
		q = r.addRequest(e.Req)
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

// addRequest adds a request. The caller holds mu.
func (r *relay) addRequest(id event.RequestID) *request {
	q := &request{}
	q.handle, q.end = engine.NewHandle(id, func() { r.cancel(id) })
	r.live[id] = q
	return q
}

// endAll ends the remaining requests in order.
func (r *relay) endAll(at event.Time, how engine.Result) {
	r.mu.Lock()
	r.finalResult = &how
	ids := slices.Sorted(maps.Keys(r.live))
	left := make([]*request, len(ids))
	for i, id := range ids {
		left[i] = r.live[id]
	}
	clear(r.live)
	r.mu.Unlock()
	for i, q := range left {
		if q.ended {
			continue
		}
		result := how
		result.Prompt, result.Generated, result.IDs, result.Text = q.prompt, q.generated, q.ids, q.text.String()
		outcome := result.Outcome
		r.sink.Emit(event.Event{Kind: event.KindRequest, At: at, Req: ids[i], State: how.State, Layer: -1, Data: &outcome})
		q.end(result)
	}
}

// emitEngine emits an engine event.
func (r *relay) emitEngine(at event.Time, engine event.EngineInfo) {
	r.sink.Emit(event.Event{Kind: event.KindEngine, At: at, Layer: -1, Data: &engine})
}

// last returns the last engine event of the child.
func (r *relay) last() event.EngineInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine
}

// stale reports whether the process has not responded for some time.
func (r *relay) stale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link == event.LinkStale
}

// connected reports whether there has been a connection.
func (r *relay) connected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link != event.LinkNone
}
