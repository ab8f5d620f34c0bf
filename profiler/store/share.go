package store

import "sync/atomic"

// HistoryBudget is a memory budget that the histories of several stores divide equally, so that a thousand stores take
// no more memory than a few.
type HistoryBudget struct {
	total, maxPerStore int          // bytes
	members            atomic.Int64 // stores
}

// NewHistoryBudget returns a budget of total bytes, of which one store takes at most maxPerStore.
func NewHistoryBudget(total, maxPerStore int) *HistoryBudget {
	return &HistoryBudget{total: total, maxPerStore: maxPerStore}
}

// minHistoryShare is what one store takes at least, in bytes, however many there are: below it a history holds only its
// last state.
const minHistoryShare = 48 << 10

// PerStore returns how many bytes each store may take now.
func (s *HistoryBudget) PerStore() int {
	return min(max(s.total/int(max(s.members.Load(), 1)), minHistoryShare), s.maxPerStore)
}

// join adds a store and returns a function that returns its current budget in bytes.
func (s *HistoryBudget) join() func() int {
	s.members.Add(1)
	return s.PerStore
}
