package watch

import (
	"context"
	"strings"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape/fleet"
)

// addFleet starts to watch the replicas that a Prometheus scrapes. Until the first replica appears, the screen shows
// Prometheus itself.
func (w *watcher) addFleet(ctx context.Context, at string) error {
	match, err := fleet.ParseMatch(w.opt.match)
	if err != nil {
		return exit.Usagef("--match: %w", err)
	}
	server := strings.TrimPrefix(at, address.FleetScheme)
	listening, local := remote.LocalAddress(server)
	here := local && discover.Listens("prometheus", listening.Port())
	source, err := fleet.New(fleet.Options{
		Address: server, Key: w.key, Match: match, Interval: w.opt.every, Clock: w.clock,
		OnReplica: func(name string) event.Sink { return w.addReplica(ctx, name, here) },
	})
	if err != nil {
		return err
	}
	at = address.FleetScheme + source.Address()
	self := session.New(store.Options{Now: w.clock.Now, Queue: session.ServerQueue})
	_, err = w.start(ctx, watched{at: at, doing: "watch " + at, run: source.Run, session: self, unalerted: true, fleet: true})
	return err
}

// addReplica starts a session for one replica, and returns the sink for its events. A replica at this machine is sampled
// like a server if Prometheus runs here as well: otherwise its name is that of another machine.
func (w *watcher) addReplica(ctx context.Context, name string, here bool) event.Sink {
	e := watched{at: name, queue: session.ServerQueue, hostUnknown: true}
	s, _ := w.start(ctx, e, func(s *session.Session) { // cannot fail: the recording is open
		if at := "http://" + name; here && remote.IsLocal(at) {
			w.machine.Watch(s, w.clock, w.machine.At(at), s)
		}
	})
	return s
}
