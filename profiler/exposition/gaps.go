package exposition

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// maxEnded is how many ended requests are remembered, so that late events do not start them again. Of requests that
// have not ended, store.MaxOpen are tracked, as in the store: about 80 bytes each, including the map.
const maxEnded = 1024

// maxFuture is how far in the future a token's timestamp may be, as in the store.
const maxFuture = event.Time(time.Second)

// gaps counts the gaps between the tokens of requests (metric.TokenGap). The store counts them too, but its
// distributions cannot be converted to other buckets. A test checks that both agree.
type gaps struct {
	now      func() event.Time
	requests map[event.RequestID]*trackedRequest
	ended    []event.RequestID // ended requests, the first to end first
}

// trackedRequest is a request whose gaps are counted.
type trackedRequest struct {
	last     event.Time // of the newest token, or of the start
	paced    int64      // ns of pacing since then
	hasToken bool       // at least one token was received
	choices  metric.Choices
	model    string // label of the requested model; "": the loaded one
	chat     bool   // sent to an interface for chats
	ended    bool   // later events are ignored, like all events of a probe
}

// find returns a tracked request, nil if it is unknown or has ended.
func (g *gaps) find(id event.RequestID) *trackedRequest {
	if r := g.requests[id]; r != nil && !r.ended {
		return r
	}
	return nil
}

// request handles a state change of a request.
func (g *gaps) request(e *event.Event) {
	if e.Req == 0 || e.State == event.StateNone || e.State >= event.NumStates {
		return
	}
	r := g.requests[e.Req]
	switch {
	case e.State.Final() && r != nil:
		g.end(e.Req, r)
	case !e.State.Final() && r == nil && len(g.requests)-len(g.ended) < store.MaxOpen:
		r = &trackedRequest{last: g.stamp(e.At)}
		g.requests[e.Req] = r
		if p, _ := e.Data.(*event.Request); p != nil {
			r.model, r.chat = cleanLabel(p.Model), p.Chat
			if p.Probe { // probes are not counted
				g.end(e.Req, r)
			}
		}
	}
}

// end stops tracking a request.
func (g *gaps) end(id event.RequestID, r *trackedRequest) {
	if r.ended {
		return
	}
	r.ended = true
	g.ended = append(g.ended, id)
	if len(g.ended) > maxEnded {
		delete(g.requests, g.ended[0])
		g.ended = g.ended[1:]
	}
}

// stamp limits a timestamp to maxFuture ahead of the clock.
func (g *gaps) stamp(at event.Time) event.Time { return min(max(at, 1), g.now()+maxFuture) }

// paced adds the time that an engine waited on purpose.
func (g *gaps) paced(e *event.Event) {
	if r := g.find(e.Req); r != nil {
		r.paced = event.Add(r.paced, max(e.Dur, 0))
	}
}

// token returns the gaps that end with a token event: their number and the length of each in ns.
func (g *gaps) token(e *event.Event) (n int, ns int64) {
	r := g.find(e.Req)
	if r == nil {
		return 0, 0
	}
	at := e.At
	if at-r.last > maxFuture { // read the clock only if necessary
		at = g.stamp(at)
	}
	at = max(at, r.last, 1)
	n = store.StampedTokens(e)
	before := metric.Choice{}
	if r.hasToken {
		before = metric.Choice{First: r.last, Last: r.last}
	}
	last := r.choices.Add(e.Choice, at, n, before)
	ns, _ = metric.TokenGap(int64(at-last), r.paced, n)
	if last == 0 {
		n = 0
	}
	r.last, r.paced, r.hasToken = at, 0, true
	return n, ns
}
