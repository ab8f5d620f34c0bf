package watch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/socket"
	"github.com/llmtop/llmtop/ui/view"
)

// addSocket starts to watch the engine at an event socket.
func (w *watcher) addSocket(ctx context.Context, at string) error {
	client, err := socket.Dial(at, w.token, w.clock)
	if err != nil {
		return err
	}
	client.Claim = func(at string) bool { return w.claim(at, client) }
	w.claim(at, client)
	e := watched{at: at, doing: "watch " + at, client: client, session: w.newSession(at, 0)}
	inspector := host.NewInspector(func() int { return e.session.Store.Snapshot().Engine.PID })
	if isLocalSocket(at) { // its model is a file of this machine
		e.inspector = inspector
	}
	e.hosted = w.machine.Watch(e.session, w.clock, session.Known(client.PID), counted(w, inspector.In(e.session)))
	e.run = func(ctx context.Context, sink event.Sink) error {
		return client.Run(ctx, e.session.Store.Patient(e.hosted.Engine(sink)))
	}
	_, err = w.start(ctx, e, func(s *session.Session) { s.Add("inspect model", inspector.Run) })
	return err
}

// isLocalSocket reports whether an address is that of an event socket of this machine, or the name of an engine with one.
func isLocalSocket(at string) bool { return strings.HasPrefix(at, "unix:") || socket.IsName(at) }

// claim makes a client the one that follows the engine at an address. It returns false if another one does.
func (w *watcher) claim(at string, c *socket.Client) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if by := w.sockets[at]; by != nil && by != c {
		return false
	}
	maps.DeleteFunc(w.sockets, func(_ string, by *socket.Client) bool { return by == c })
	w.sockets[at] = c
	return true
}

// discoverInterval is the interval between searches for new event sockets.
const discoverInterval = 2 * time.Second

// discover adds new event sockets until ctx ends.
func (w *watcher) discover(ctx context.Context) error {
	tick := time.NewTicker(discoverInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.addDiscovered(ctx); err != nil {
			return err
		}
	}
}

// addDiscovered adds the event sockets that are not watched yet. It leaves the next process of an engine that has ended to
// the client that waits for it.
func (w *watcher) addDiscovered(ctx context.Context) error {
	found, err := socket.Look(ctx, false)
	if err != nil {
		return err
	}
	for _, f := range found {
		if w.watches(f.Address) || w.awaits(f.Engine.Name) {
			continue
		}
		if err := w.add(ctx, f.Address); err != nil {
			return err
		}
	}
	return nil
}

// awaits reports whether a client waits for the next process of an engine with a name.
func (w *watcher) awaits(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(w.sockets)), func(c *socket.Client) bool { return c.Awaits(name) })
}

// answerTimeout is how long the screen waits for a remote engine to accept a prompt or a cancellation.
const answerTimeout = 300 * time.Millisecond

// actions returns the actions of a remote engine. The engine itself announces which it accepts.
func actions(client *socket.Client) view.Actions {
	var defaults local.Settings
	defaults.Bind(pflag.NewFlagSet("defaults", pflag.ContinueOnError))
	return view.Actions{
		Prompt: func(text, label string) (note string, err error) {
			ctx, done := context.WithTimeout(context.Background(), answerTimeout)
			defer done()
			p := defaults.Params()
			_, err = client.Generate(ctx, wire.Generation{
				Prompt: text, Label: label, Text: true, MaxTokens: defaults.Tokens,
				Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, RepeatPenalty: p.RepeatPenalty, Seed: p.Seed,
			})
			return "", err
		},
		Cancel: func(id event.RequestID) error {
			ctx, done := context.WithTimeout(context.Background(), answerTimeout)
			defer done()
			return client.Cancel(ctx, id)
		},
	}
}
