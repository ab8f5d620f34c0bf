package cmd

import (
	"context"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime/scrape/fleet"
)

// fleetScheme begins the address of a Prometheus whose targets are watched.
const fleetScheme = "prometheus+"

// isFleet reports whether a word of the command line is such an address.
func isFleet(at string) bool {
	return strings.HasPrefix(at, fleetScheme+"http://") || strings.HasPrefix(at, fleetScheme+"https://")
}

// addFleet begins to watch the replicas that a Prometheus scrapes. Prometheus is on show itself until there is one of them.
func (a *attached) addFleet(ctx context.Context, at string) error {
	match, err := fleet.ParseMatch(a.opt.match)
	if err != nil {
		return usagef("--match: %w", err)
	}
	self := newSession(store.Options{Now: a.clock.Now, Queue: serverQueue})
	source, err := fleet.New(fleet.Options{
		Address: strings.TrimPrefix(at, fleetScheme), Key: a.key, Match: match, Interval: a.opt.every, Clock: a.clock,
		Meet: func(name string) event.Sink { return a.replica(ctx, name) },
	})
	if err != nil {
		return err
	}
	at = fleetScheme + source.Address()
	if err := a.record(self, trace.Source{Name: at, Fleet: true}); err != nil {
		return err
	}
	self.add("watch "+at, because(a.opt.note, source.Run))
	a.group.Go(func() error { return a.watch(ctx, self, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: at, session: self, fleet: true})
	return nil
}

// replica begins to show one of a fleet, and returns where its events go.
func (a *attached) replica(ctx context.Context, name string) event.Sink {
	s := a.session(name, store.Options{Now: a.clock.Now, Targets: a.opt.targets, Queue: serverQueue})
	if a.recorder != nil {
		a.recordAmong(s, trace.Source{Name: name})
	}
	a.group.Go(func() error { return a.watch(ctx, s, name) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: name, session: s, elsewhere: true})
	return s.sink
}

// shown are the engines of the screen: a Prometheus is among them only while nothing else is.
func (a *attached) shown() []engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]engine, 0, len(a.engines))
	for _, e := range a.engines {
		if !e.fleet {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		out = append(out, a.engines...)
	}
	return out
}
