package socket

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

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
