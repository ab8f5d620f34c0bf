package cmd

import (
	"context"
	"slices"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/prober"
	"github.com/llmtop/llmtop/runtime/scrape"
)

// serverQueue is how many events of a server wait for the screen at most. It sends a few a second, and there may be hundreds of servers.
const serverQueue = 512

// crowdFrom is from how many servers on each is kept as one of many: the machine is not shown beside those that run on it.
const crowdFrom = 33

// addServer begins to watch the server at an address over HTTP.
func (a *attached) addServer(ctx context.Context, at string) error {
	shared := new(prober.Shared)
	published, err := a.publishers()
	if err != nil {
		return err
	}
	var besides scrape.Published
	if len(published) > 0 {
		besides = published
	}
	source, err := scrape.New(scrape.Options{
		Shared:  shared,
		Address: at, Key: a.key, Interval: a.opt.every, Clock: a.clock, Lanes: a.lanes, Drain: a.opt.drain, Published: besides,
		Runners: runnersOf(at),
	})
	if err != nil {
		return err
	}
	at = source.Address()
	if a.watches(at) {
		return nil
	}
	alone := len(a.opt.addresses) < crowdFrom
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets, Queue: serverQueue})
	a.alerts.over(s, a.called(at))
	if err := a.record(s, trace.Source{Name: at}); err != nil {
		return err
	}
	watching, probes := a.opt.probing.watch(at, a.key, a.clock, shared, source.Run)
	s.add("watch "+at, because(a.opt.note, watching))
	for _, p := range published {
		s.add("follow "+p.Address(), p.Run)
	}
	if probes != nil {
		s.add("probe "+at, probes)
	}
	if alone && api.IsLocal(at) {
		a.machine.add(at, s.sink)
	}
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: at, session: s})
	return nil
}

// runnersOf looks for the llama-servers of an Ollama on this machine; nil for an address elsewhere.
func runnersOf(at string) func() []string {
	here, ok := api.LocalAddress(at)
	if !ok {
		return nil
	}
	return func() []string { return discover.Runners(here.Port()) }
}

// local reports whether a server of this machine is watched, whose machine is then worth a look.
func (a *attached) local() bool {
	return slices.ContainsFunc(a.opt.addresses, func(at string) bool { return api.IsAddress(at) && api.IsLocal(at) })
}
