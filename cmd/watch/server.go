package watch

import (
	"context"
	"slices"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/discover"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// crowdThreshold is the number of servers from which on their sessions have no samples of this machine.
const crowdThreshold = 33

// addServer starts to watch the HTTP server at an address.
func (w *watcher) addServer(ctx context.Context, at string) error {
	source, err := scrape.New(scrape.Options{
		Address: at, Key: w.key, Interval: w.opt.every, Clock: w.clock, Drain: w.opt.drain,
		Runners: ollamaRunners(at), NeverSleeps: neverSleeps(at), KeepAwake: w.opt.keepAwake,
	})
	if err != nil {
		return err
	}
	at = source.Address()
	if w.watches(at) {
		return nil
	}
	alone := len(w.opt.Addresses) < crowdThreshold
	_, err = w.start(ctx, watched{at: at, doing: "watch " + at, run: source.Run, queue: session.ServerQueue}, func(s *session.Session) {
		if alone && remote.IsLocal(at) {
			w.machine.Watch(s, w.clock, w.machine.At(at), counted(w, s))
		}
	})
	return err
}

// ollamaRunners returns a function that lists the llama-servers of an Ollama on this machine; nil for another machine.
func ollamaRunners(at string) func() map[string]string {
	here, ok := remote.LocalAddress(at)
	if !ok {
		return nil
	}
	return func() map[string]string { return discover.Runners(here.Port()) }
}

// neverSleeps returns a function that reports whether a llama-server on this machine was started without a way to sleep;
// nil for another machine.
func neverSleeps(at string) func() bool {
	here, ok := remote.LocalAddress(at)
	if !ok {
		return nil
	}
	return func() bool { return discover.NeverSleeps(here.Port()) }
}

// watchesLocal reports whether an engine may run on this machine.
func (w *watcher) watchesLocal() bool {
	return len(w.opt.Addresses) == 0 || slices.ContainsFunc(w.opt.Addresses, func(at string) bool {
		return w.probes[at] != nil || isLocalSocket(at) || address.IsLocal(at)
	})
}

// onlyServers reports whether only servers are watched, whose passes are not seen.
func (w *watcher) onlyServers() bool {
	return len(w.opt.Addresses) > 0 && !slices.ContainsFunc(w.opt.Addresses, func(at string) bool { return !remote.IsAddress(at) })
}
