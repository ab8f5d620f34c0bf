package cmd

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/prober"
)

// probing says whether servers are sent requests of llmtop's own.
type probing struct {
	every time.Duration // 0: they are not
	model string
}

func (p *probing) bind(f *pflag.FlagSet) {
	f.DurationVar(&p.every, "probe", 0, "of servers: send a request of llmtop's own for 8 tokens this often, to measure latency (--probe alone: every 10s)")
	f.Lookup("probe").NoOptDefVal = prober.DefaultEvery.String()
	f.StringVar(&p.model, "probe-model", "", "model that probes ask for, of a server with several")
}

func (p *probing) check() error {
	switch {
	case p.every != 0 && p.every < prober.LeastEvery:
		return usagef("--probe=%v: must be at least %v", p.every, prober.LeastEvery)
	case p.every == 0 && p.model != "":
		return usagef("--probe-model needs --probe")
	}
	return nil
}

// watch is watching a server, which is probed beside if that is wanted.
func (p *probing) watch(at, key string, clock runtime.Clock, shared *prober.Shared, watch func(context.Context, event.Sink) error) (watching, probes func(context.Context, event.Sink) error) {
	if p.every == 0 {
		return watch, nil
	}
	source := prober.New(prober.Options{Address: at, Key: key, Model: p.model, Every: p.every, Clock: clock, Shared: shared})
	return func(ctx context.Context, sink event.Sink) error { return watch(ctx, source.Beside(sink)) }, source.Run
}
