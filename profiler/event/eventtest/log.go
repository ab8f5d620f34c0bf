// Package eventtest helps to test event sources.
package eventtest

import (
	"slices"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// Log is a sink that records events. Its zero value is ready to use.
type Log struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements event.Sink.
func (l *Log) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// All returns the events so far, in order.
func (l *Log) All() []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// OfKind returns the events of a kind so far, in order.
func (l *Log) OfKind(kind event.Kind) []event.Event {
	return slices.DeleteFunc(l.All(), func(e event.Event) bool { return e.Kind != kind })
}
