package cmd

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/prober"
)

// probeFlags are the flags for probe requests to servers.
type probeFlags struct {
	every time.Duration // 0: off
	model string
}

func (p *probeFlags) bind(f *pflag.FlagSet) {
	f.DurationVar(&p.every, "probe", 0, "measure latency with a request for 8 tokens every `DURATION` (--probe alone: 10s)")
	f.Lookup("probe").NoOptDefVal = prober.DefaultInterval.String()
	f.StringVar(&p.model, "probe-model", "", "`MODEL` that probes request, for servers with several")
}

func (p *probeFlags) check() error {
	switch {
	case p.every != 0 && p.every < prober.MinInterval:
		return usagef("--probe=%v: must be at least %v", p.every, prober.MinInterval)
	case p.every == 0 && p.model != "":
		return usagef("--probe-model needs --probe")
	}
	return nil
}

// watch returns the function that watches a server, and the one that probes it, nil without --probe.
func (p *probeFlags) watch(at, key string, clock engine.Clock, shared *prober.RequestIDs, watch func(context.Context, event.Sink) error) (watching, probes func(context.Context, event.Sink) error) {
	if p.every == 0 {
		return watch, nil
	}
	source := prober.New(prober.Options{Address: at, Key: key, Model: p.model, Interval: p.every, Clock: clock, RequestIDs: shared})
	return func(ctx context.Context, sink event.Sink) error { return watch(ctx, source.Observe(sink)) }, source.Run
}
