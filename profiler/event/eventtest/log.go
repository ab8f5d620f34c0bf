// Package eventtest is for tests of what emits events.
package eventtest

import (
	"slices"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// Log is a sink that remembers. Its zero value is ready to use.
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

// All are the events so far, in order.
func (l *Log) All() []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Of are the events of a kind so far, in order.
func (l *Log) Of(kind event.Kind) []event.Event {
	return slices.DeleteFunc(l.All(), func(e event.Event) bool { return e.Kind != kind })
}
