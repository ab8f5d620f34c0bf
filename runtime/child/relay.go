package child

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// relay passes the events of the child on as those of an engine in this process, and follows its requests.
type relay struct {
	name   string                // of the process, where it must be told from others
	cancel func(event.RequestID) // ends a request

	broken chan struct{} // closed when the connection has broken
	once   sync.Once

	mu      sync.Mutex // guards what follows
	sink    event.Sink
	linked  func() // is called once, when the connection stands
	engine  event.Engine
	link    event.Link
	live    map[event.RequestID]*request
	pending int             // calls to Submit whose answer has not come
	over    *runtime.Result // how requests end that nobody will hear of any more; nil while the process is heard
}

// request is one that has not ended, or whose handle nobody has asked for yet.
type request struct {
	handle *runtime.Handle
	end    func(runtime.Result)
	taken  bool // the handle
	ended  bool

	prompt, generated int
	ids               []int32
	text              strings.Builder
}

func newRelay(name string, cancel func(event.RequestID)) *relay {
	return &relay{name: name, cancel: cancel, broken: make(chan struct{}), live: make(map[event.RequestID]*request)}
}

// begin takes the sink and what is known of the engine.
func (r *relay) begin(sink event.Sink, linked func(), engine event.Engine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sink, r.linked, r.engine = sink, linked, engine
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

// adapt makes an engine event one of this process, without Data if nobody is to see it.
func (r *relay) adapt(e event.Event) event.Event {
	engine := *e.Data.(*event.Engine)
	r.mu.Lock()
	defer r.mu.Unlock()
	remote := engine.Remote
	r.link = remote.Link
	engine.Remote = event.Remote{Missing: remote.Missing, Garbage: remote.Garbage} // whatever is wrong is never hidden
	switch remote.Link {
	case event.LinkConnected:
		if r.linked != nil {
			r.linked()
			r.linked = nil
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

// follow passes an event of a request on, and ends its handle after its last one.
func (r *relay) follow(e event.Event) {
	r.mu.Lock()
	q := r.note(&e)
	r.mu.Unlock()
	r.sink.Emit(e)
	if q == nil || e.Kind != event.KindRequest || !e.State.Final() {
		return
	}
	result := runtime.Result{State: e.State, IDs: q.ids, Text: q.text.String()}
	if o, ok := e.Data.(*event.Outcome); ok {
		result.Outcome = *o
	}
	if e.State == event.StateFailed {
		result.Err = failure(result.Reason)
	}
	q.end(result)
}

// note keeps account of a request. The caller holds mu.
func (r *relay) note(e *event.Event) *request {
	q := r.live[e.Req]
	if q == nil {
		if e.Kind != event.KindRequest || e.State.Final() {
			return nil
		}
		q = r.expect(e.Req)
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
		if q.taken || r.pending == 0 {
			delete(r.live, e.Req)
		}
	}
	return q
}

// expect makes room for a request. The caller holds mu.
func (r *relay) expect(id event.RequestID) *request {
	q := &request{}
	q.handle, q.end = runtime.NewHandle(id, func() { r.cancel(id) })
	r.live[id] = q
	return q
}

// endAll ends the requests that are left, in their order.
func (r *relay) endAll(at event.Time, how runtime.Result) {
	r.mu.Lock()
	r.over = &how
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

// introduce tells what the engine is.
func (r *relay) introduce(at event.Time, engine event.Engine) {
	r.sink.Emit(event.Event{Kind: event.KindEngine, At: at, Layer: -1, Data: &engine})
}

// last is what the engine has said of itself last.
func (r *relay) last() event.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine
}

// stale reports whether the process has gone silent.
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
