package prober

import (
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
)

// Shared is what the probe of a server and whoever watches that server know together: they number requests as one, and a watcher that sees
// the probe among the server's requests recognises it. The zero value is ready.
type Shared struct {
	last, seed, current atomic.Uint64
}

// Next is the number of the next request.
func (s *Shared) Next() event.RequestID { return event.RequestID(s.last.Add(1)) }

// Of is the probe that was sent with a seed, 0 if it is not yet told of; false if the request is somebody else's.
func (s *Shared) Of(seed uint64) (event.RequestID, bool) {
	if own := s.seed.Load(); own == 0 || own != seed {
		return 0, false
	}
	return event.RequestID(s.current.Load()), true
}

// begin says with which seed the next probe goes.
func (s *Shared) begin(seed uint64) {
	s.current.Store(0)
	s.seed.Store(seed)
}
