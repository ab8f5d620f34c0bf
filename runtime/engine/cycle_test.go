package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// turns returns the labels of the requests so far, in queue order.
func (b *bench) turns() (labels string) {
	for _, e := range b.byKind(event.KindRequest, 0) {
		if q, ok := e.Data.(*event.Request); ok {
			labels += q.Label
		}
	}
	return labels
}

var kinds = []engine.Request{
	{Text: "abc", Label: "A", MaxTokens: 2}, {Text: "abc", Label: "B", MaxTokens: 2}, {Text: "abc", Label: "C", MaxTokens: 2},
}

func TestCycleOrder(t *testing.T) {
	run(t, newFake(t, 2, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- engine.NewCycle(b.Scheduler, kinds, 2, time.Second).Run(ctx) }()
		time.Sleep(2500 * time.Millisecond)
		if got := b.turns(); got != "ABCABC" {
			t.Errorf("turns %q, want ABCABC: two at a time, one a second", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestPromptInterruptsCycle submits prompts while a request of the cycle runs.
func TestPromptInterruptsCycle(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 1}, func(t *testing.T, b *bench) {
		c := engine.NewCycle(b.Scheduler, kinds, 1, time.Second)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(500 * time.Millisecond)
		if _, err := c.Submit(engine.Request{}); !errors.Is(err, engine.ErrEmptyPrompt) {
			t.Errorf("empty prompt: %v", err)
		}
		if len(ended) > 0 || len(b.byKind(event.KindRequest, 1)) != 2 {
			t.Error("a refused prompt has interrupted the cycle")
		}
		h, err := c.Submit(engine.Request{Text: "x", Label: "user", MaxTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, h, event.StateFinished, "length", "y")
		if first := b.byKind(event.KindRequest, 1); first[len(first)-1].State != event.StateCancelled {
			t.Errorf("the cycle's request ended %v", first[len(first)-1].State)
		}
		time.Sleep(engine.ResumeAfter / 2)
		if _, err := c.Submit(engine.Request{Text: "x", Label: "user", MaxTokens: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(engine.ResumeAfter * 3 / 4)
		if got := b.turns(); got != "Auseruser" {
			t.Errorf("turns %q, want only the user's prompts", got)
		}
		time.Sleep(2 * engine.ResumeAfter)
		cancel()
		if got := b.turns(); !strings.HasPrefix(got, "AuseruserBC") {
			t.Errorf("turns %q, want the cycle to go on after the user's prompts", got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCycleEndsWithScheduler: the cycle ends when the scheduler has stopped.
func TestCycleEndsWithScheduler(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		ended := make(chan error, 1)
		go func() { ended <- engine.NewCycle(b.Scheduler, kinds, 1, time.Second).Run(context.Background()) }()
		time.Sleep(500 * time.Millisecond)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, engine.ErrStopped) {
			t.Errorf("the cycle ended with %v", err)
		}
	})
}
