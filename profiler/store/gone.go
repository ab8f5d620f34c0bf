package store

import "github.com/llmtop/llmtop/profiler/event"

// maxGone is how many requests that have left the ring are remembered by their ids: with map and order some 150 KB.
const maxGone = 4096

// gone remembers requests that are not kept, so that an end that is told late or again is counted once, and with the tokens that had not
// been counted.
type gone struct {
	counted map[event.RequestID]int // tokens that were counted; allCounted for those of which all were
	order   []event.RequestID       // oldest first
}

// allCounted stands for a request of which all tokens have been counted.
const allCounted = -1

// add remembers a request. The oldest quarter goes when there are too many.
func (g *gone) add(id event.RequestID, counted int) {
	if g.counted == nil {
		g.counted = make(map[event.RequestID]int)
	}
	if _, known := g.counted[id]; !known {
		if len(g.order) >= maxGone {
			for _, old := range g.order[:maxGone/4] {
				delete(g.counted, old)
			}
			g.order = append(g.order[:0], g.order[maxGone/4:]...)
		}
		g.order = append(g.order, id)
	}
	g.counted[id] = counted
}

// endUnseen counts the end of a request that is not kept: its beginning was lost, or it has run for longer than it could be kept.
func (s *state) endUnseen(e *event.Event) {
	counted := s.requests.gone.counted[e.Req]
	if counted == allCounted {
		return
	}
	s.end(e.State)
	if o, ok := e.Data.(*event.Outcome); ok && o != nil {
		s.counts.GeneratedTokens += uint64(max(o.Generated-counted, 0))
		s.counts.PromptTokens += uint64(max(o.Prompt, 0))
		s.counts.CachedTokens += uint64(max(o.Cached, 0))
		s.counts.PadTokens += uint64(max(o.Padding, 0))
	}
	s.requests.gone.add(e.Req, allCounted)
}
