package pane

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// RunningCount returns the number of running requests.
func RunningCount(s *store.Snapshot) event.Reading {
	switch kind := s.Kind(); {
	case kind.Has(store.Reported):
		return s.Aggregates.Running
	case kind.Has(store.Polled), s.NeverReached(): // no report yet
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(float64(s.Throughput.Running))
}

// QueuedCount returns the number of waiting requests.
func QueuedCount(s *store.Snapshot) event.Reading {
	switch {
	case s.Reported():
		return s.Aggregates.Waiting
	case s.NeverReached():
		return event.Absent(event.NotYet)
	case !s.Engine.Caps.Has(event.CapQueue):
		return event.Absent(event.NotReported)
	}
	return event.DerivedValue(float64(s.Throughput.Queued))
}
