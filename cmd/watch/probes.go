package watch

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/probe"
)

// openProbes attaches probes to the processes among the addresses that link llama.cpp, if that is permitted, and then
// gives up the privileges that it took. Other addresses become those of servers and event sockets.
func (o *Options) openProbes(ctx context.Context, w *watcher) error {
	for i, at := range o.Addresses {
		number, isProcess := strings.CutPrefix(at, "pid:")
		var refused error
		if pid, err := strconv.Atoi(number); isProcess && err == nil && pid > 0 {
			var p *probe.Probe
			if p, refused = attachProbes(pid, w); refused == nil {
				w.probes[at] = p
				continue
			}
		}
		parsed, err := address.Parse(ctx, at)
		switch {
		case err != nil && errors.Is(refused, os.ErrPermission):
			return exit.Usagef("attach %s: %w: run sudo llmtop attach %s", at, refused, at)
		case err != nil:
			return o.addressError(at, err)
		}
		o.Addresses[i] = parsed
	}
	if len(w.probes) == 0 {
		return nil
	}
	return probe.Drop()
}

// attachProbes attaches probes to a process.
func attachProbes(pid int, w *watcher) (*probe.Probe, error) {
	target, err := probe.Inspect(pid)
	if err != nil {
		return nil, err
	}
	return probe.Open(target, w.clock, engine.Hooks{})
}

// addProbed starts to watch a process by its probes.
func addProbed(ctx context.Context, w *watcher, at string, p *probe.Probe) error {
	run := func(ctx context.Context, sink event.Sink) error { return errors.Join(p.Run(ctx, sink), p.Close()) }
	sink, err := w.start(ctx, watched{at: at, doing: "watch " + at, run: run}, func(s *session.Session) {
		s.AddUsage(host.UsageOptions{Clock: w.clock, Processes: p.Processes})
	})
	if err == nil {
		w.machine.AddProcess(p.PID(), sink)
	}
	return err
}
