package cmd

import (
	"context"
	"slices"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/prober"
	"github.com/llmtop/llmtop/runtime/source/scrape"
)

// serverQueue is the capacity of the event queue of a server: it sends a few events per second, and there may be
// hundreds of servers.
const serverQueue = 512

// crowdThreshold is the number of servers from which on their sessions have no samples of this machine.
const crowdThreshold = 33

// addServer starts to watch the HTTP server at an address.
func (a *attached) addServer(ctx context.Context, at string) error {
	shared := new(prober.RequestIDs)
	published, err := a.openPublishers()
	if err != nil {
		return err
	}
	var besides scrape.Publisher
	if len(published) > 0 {
		besides = published
	}
	source, err := scrape.New(scrape.Options{
		RequestIDs: shared,
		Address:    at, Key: a.key, Interval: a.opt.every, Clock: a.clock, Limits: a.lanes, Drain: a.opt.drain, Publisher: besides,
		Runners: ollamaRunners(at),
	})
	if err != nil {
		return err
	}
	at = source.Address()
	if a.watches(at) {
		return nil
	}
	alone := len(a.opt.addresses) < crowdThreshold
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets, Queue: serverQueue})
	a.alerts.watch(s, a.alertName(at))
	if err := a.record(s, recording.EngineEntry{Name: at}); err != nil {
		return err
	}
	watching, probes := a.opt.probing.watch(at, a.key, a.clock, shared, source.Run)
	s.add("watch "+at, withReason(a.opt.note, watching))
	for _, p := range published {
		s.add("follow "+p.Address(), p.Run)
	}
	if probes != nil {
		s.add("probe "+at, probes)
	}
	if alone && remote.IsLocal(at) {
		a.machine.add(at, s.sink)
	}
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: at, session: s})
	return nil
}

// ollamaRunners returns a function that lists the llama-servers of an Ollama on this machine; nil for another machine.
func ollamaRunners(at string) func() []string {
	here, ok := remote.LocalAddress(at)
	if !ok {
		return nil
	}
	return func() []string { return discover.Runners(here.Port()) }
}

// watchesLocal reports whether a server on this machine is watched, so that the machine is sampled.
func (a *attached) watchesLocal() bool {
	return slices.ContainsFunc(a.opt.addresses, func(at string) bool { return remote.IsAddress(at) && remote.IsLocal(at) })
}
