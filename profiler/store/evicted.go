package store

import "github.com/llmtop/llmtop/profiler/event"

// maxEvictedIDs is how many ids of ended and evicted requests are kept: about 150 KB with map and order.
const maxEvictedIDs = 4096

// evictedIDs holds the ids of ended requests that are no longer in the ring, so that a late or repeated end counts
// once.
type evictedIDs struct {
	ids   map[event.RequestID]struct{}
	order []event.RequestID // oldest first
}

func (g *evictedIDs) has(id event.RequestID) bool {
	_, ok := g.ids[id]
	return ok
}

// add adds an id. When the set is full it drops the oldest quarter.
func (g *evictedIDs) add(id event.RequestID) {
	if g.ids == nil {
		g.ids = make(map[event.RequestID]struct{})
	}
	if g.has(id) {
		return
	}
	if len(g.order) >= maxEvictedIDs {
		for _, old := range g.order[:maxEvictedIDs/4] {
			delete(g.ids, old)
		}
		g.order = append(g.order[:0], g.order[maxEvictedIDs/4:]...)
	}
	g.order = append(g.order, id)
	g.ids[id] = struct{}{}
}
