package engine

import (
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
)

// RequestIDs numbers the requests to one server for the prober and the source that polls the server. The polling source
// uses it to recognise probes among the server's requests. The zero value is ready to use.
type RequestIDs struct {
	last, seed, current atomic.Uint64
}

// Next returns the next ID.
func (s *RequestIDs) Next() event.RequestID { return event.RequestID(s.last.Add(1)) }

// Probe returns the ID of the probe that was sent with a seed, 0 if it has none yet; false if the request is not a
// probe.
func (s *RequestIDs) Probe(seed uint64) (event.RequestID, bool) {
	if current := s.seed.Load(); current == 0 || current != seed {
		return 0, false
	}
	return event.RequestID(s.current.Load()), true
}

// SetSeed sets the seed of the next probe.
func (s *RequestIDs) SetSeed(seed uint64) {
	s.current.Store(0)
	s.seed.Store(seed)
}

// SetProbe sets the ID of the probe whose seed was set last.
func (s *RequestIDs) SetProbe(id event.RequestID) { s.current.Store(uint64(id)) }
