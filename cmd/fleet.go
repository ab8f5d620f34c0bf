package cmd

import (
	"context"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/source/scrape/fleet"
)

// fleetScheme is the prefix of the address of a Prometheus whose targets are watched.
const fleetScheme = "prometheus+"

// isFleet reports whether an argument is such an address.
func isFleet(at string) bool {
	return strings.HasPrefix(at, fleetScheme+"http://") || strings.HasPrefix(at, fleetScheme+"https://")
}

// addFleet starts to watch the replicas that a Prometheus scrapes. Until the first replica appears, the screen shows
// Prometheus itself.
func (a *attached) addFleet(ctx context.Context, at string) error {
	match, err := fleet.ParseMatch(a.opt.match)
	if err != nil {
		return usagef("--match: %w", err)
	}
	self := newSession(store.Options{Now: a.clock.Now, Queue: serverQueue})
	source, err := fleet.New(fleet.Options{
		Address: strings.TrimPrefix(at, fleetScheme), Key: a.key, Match: match, Interval: a.opt.every, Clock: a.clock,
		OnReplica: func(name string) event.Sink { return a.replica(ctx, name) },
	})
	if err != nil {
		return err
	}
	at = fleetScheme + source.Address()
	if err := a.record(self, recording.EngineEntry{Name: at, Fleet: true}); err != nil {
		return err
	}
	self.add("watch "+at, withReason(a.opt.note, source.Run))
	a.group.Go(func() error { return a.watch(ctx, self, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: at, session: self, fleet: true})
	return nil
}

// replica starts a session for one replica, and returns the sink for its events.
func (a *attached) replica(ctx context.Context, name string) event.Sink {
	s := a.session(name, store.Options{Now: a.clock.Now, Targets: a.opt.targets, Queue: serverQueue})
	if a.recorder != nil {
		a.recordWithOthers(s, recording.EngineEntry{Name: name})
	}
	a.group.Go(func() error { return a.watch(ctx, s, name) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: name, session: s, hostUnknown: true})
	return s.sink
}

// visibleEngines returns the engines to show: a Prometheus only while there is nothing else.
func (a *attached) visibleEngines() []attachedEngine {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]attachedEngine, 0, len(a.engines))
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
