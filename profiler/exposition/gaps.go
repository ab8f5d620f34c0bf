package exposition

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// maxFollowed is how many requests are followed for the gaps between their tokens, the newest: 24 bytes each and their place in a map.
const maxFollowed = 1024

// ahead is how far the stamps of a token may lie in the future, as in the store.
const ahead = event.Time(time.Second)

// gaps follows requests from token to token. The store defines what a gap is; it keeps distributions of its own that cannot be turned into
// those of other buckets, so gaps are counted here a second time. A test holds the two to each other.
type gaps struct {
	now    func() event.Time
	place  map[event.RequestID]int // in list
	list   []followed              // at most maxFollowed
	oldest int                     // in list once it is full, the next to be forgotten
}

// followed is a request whose gaps are counted.
type followed struct {
	id    event.RequestID
	last  event.Time // of the newest token, or of the beginning
	paced int64      // ns that were waited on purpose since then
	some  bool       // a token has come
	ended bool       // what still comes for it is passed over, as all of a probe's
}

// find is the request that an event is about, nil if it is not followed or has ended.
func (g *gaps) find(id event.RequestID) *followed {
	if i, ok := g.place[id]; ok && !g.list[i].ended {
		return &g.list[i]
	}
	return nil
}

// request follows the states of a request.
func (g *gaps) request(e *event.Event) {
	if e.Req == 0 || e.State == event.StateNone || e.State >= event.NumStates {
		return
	}
	i, known := g.place[e.Req]
	p, _ := e.Data.(*event.Request)
	aside := p != nil && p.Probe // llmtop's own
	switch {
	case e.State.Final() && known:
		g.list[i].ended = true
	case !e.State.Final() && !known:
		if len(g.list) < maxFollowed {
			g.place[e.Req] = len(g.list)
			g.list = append(g.list, followed{id: e.Req, last: g.stamp(e.At), ended: aside})
			return
		}
		old := &g.list[g.oldest]
		delete(g.place, old.id)
		*old = followed{id: e.Req, last: g.stamp(e.At), ended: aside}
		g.place[e.Req] = g.oldest
		g.oldest = (g.oldest + 1) % maxFollowed
	}
}

// stamp is a stamp that cannot be far in the future.
func (g *gaps) stamp(at event.Time) event.Time { return min(max(at, 1), g.now()+ahead) }

// paced notes that an engine waited on purpose.
func (g *gaps) paced(e *event.Event) {
	if r := g.find(e.Req); r != nil {
		r.paced += min(max(e.Dur, 0), int64(maxWait))
	}
}

// maxWait bounds what an engine may say that it waited between two tokens, so that sums do not overflow.
const maxWait = 24 * time.Hour

// token tells the gaps that end with a token event: so many, of so many ns each.
func (g *gaps) token(e *event.Event) (n int, ns int64) {
	r := g.find(e.Req)
	if r == nil {
		return 0, 0
	}
	at := e.At
	if at-r.last > ahead { // otherwise it is not worth a look at the clock
		at = g.stamp(at)
	}
	at = max(at, r.last, 1)
	n = int(min(max(e.N, 1), store.MaxTokens))
	ns = (int64(at-r.last) - min(r.paced, int64(at-r.last))) / int64(n)
	if !r.some {
		n = 0
	}
	r.last, r.paced, r.some = at, 0, true
	return n, ns
}
