package eventtest

import (
	"context"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Patience is how long a test waits for what must come, however busy the machine is.
const Patience = 60 * time.Second

// Source is what writes events into a sink until it is told to stop.
type Source interface {
	Run(ctx context.Context, sink event.Sink) error
}

// Run runs a source until the test ends, which must not make it fail.
func Run(t testing.TB, s Source, sink event.Sink) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Wait waits until something is so.
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
