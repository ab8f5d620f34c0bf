package eventtest

import (
	"context"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Patience is how long a test waits for an event, however busy the machine is.
const Patience = 60 * time.Second

// Runner emits events until ctx ends.
type Runner interface {
	Run(ctx context.Context, sink event.Sink) error
}

// Run runs a source until the test ends. The test fails if Run returns an error.
func Run(t testing.TB, s Runner, sink event.Sink) {
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
