package eventtest

import (
	"context"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Patience is how long a test waits for an event, however busy the machine is.
const Patience = 60 * time.Second

// Run runs a source, by its method Run, until the test ends. The test fails if that returns an error.
func Run(t testing.TB, s interface {
	Run(ctx context.Context, sink event.Sink) error
}, sink event.Sink,
) {
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

// Wait polls ok until it returns true, and fails the test after Patience.
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("wait for %s: timed out", what)
		}
	}
}
