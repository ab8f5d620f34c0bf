package cmd

import (
	"context"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime"
)

// operations keeps the newest times of an engine's operations, which an engine that crashes would take with it.
type operations struct {
	mu   sync.Mutex
	last *runtime.Ops
}

// timed is a scheduler whose engine may time its operations.
type timed interface {
	Ops(ctx context.Context) (*runtime.Ops, error)
}

// opsEvery is how often the times are asked for, and opsPatience how long an answer is waited for.
const (
	opsEvery    = 500 * time.Millisecond
	opsPatience = 2 * time.Second
)

// watch asks for the times until ctx ends.
func (o *operations) watch(ctx context.Context, s scheduler) {
	tick := time.NewTicker(opsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.look(ctx, s)
		}
	}
}

// look asks for the times. An engine that does not answer leaves those that are known.
func (o *operations) look(ctx context.Context, s scheduler) {
	ctx, done := context.WithTimeout(ctx, opsPatience)
	defer done()
	t, ok := s.(timed)
	if !ok {
		return
	}
	got, err := t.Ops(ctx)
	if err != nil || got == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = got
}

// report is what is known, as the report has it; nil if that is nothing.
func (o *operations) report() *report.Ops {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		return nil
	}
	out := &report.Ops{Passes: o.last.Passes, Slowdown: report.Number(o.last.Slowdown), Times: []report.OpTime{}}
	for _, t := range o.last.Times {
		row := report.OpTime{Op: t.Op, Calls: t.Calls, Time: report.Number(event.Of(t.Time.Seconds()))}
		if layer := t.Layer; layer >= 0 {
			row.Layer = &layer
		}
		out.Times = append(out.Times, row)
	}
	return out
}
