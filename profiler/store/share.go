package store

import "sync/atomic"

// Share is what stores remember of the past together: each as much as the others, so that a thousand of them take no more memory than a few.
type Share struct {
	total, most int // bytes, of all and of one
	members     atomic.Int64
}

// NewShare makes a share of so many bytes, of which one store takes at most so many.
func NewShare(total, most int) *Share { return &Share{total: total, most: most} }

// leastShare is what one store takes however many there are: with less it would remember no more than its last state.
const leastShare = 48 << 10

// Each is how many bytes each store has at the moment.
func (s *Share) Each() int {
	return min(max(s.total/int(max(s.members.Load(), 1)), leastShare), s.most)
}

// join adds a member, and returns how many bytes it may take. It takes less when others come.
func (s *Share) join() func() int {
	s.members.Add(1)
	return s.Each
}
