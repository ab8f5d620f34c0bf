package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/probe"
)

// openProbes attaches probes to the processes among the addresses that link llama.cpp or compute with CUDA, if that is permitted, and then
// gives up the privileges that it took. Other addresses become those of servers and event sockets.
func (o *Options) openProbes(ctx context.Context, w *watcher) error {
	for i, at := range o.Addresses {
		at, err := address.Named(ctx, at)
		if err != nil {
			return err
		}
		o.Addresses[i] = at
		number, isProcess := strings.CutPrefix(at, "pid:")
		var refused error
		if pid, err := strconv.Atoi(number); isProcess && err == nil && pid > 0 {
			var p *probe.Probe
			if p, refused = attachProbes(pid, w); refused == nil {
				w.probes[at] = p
				continue
			}
		}
		if errors.Is(refused, os.ErrPermission) {
			refused = fmt.Errorf("%w: run %s", refused, Sudo("attach", at))
		}
		parsed, err := address.Parse(ctx, at)
		switch absent := refused == nil || errors.Is(refused, probe.ErrAbsent); {
		case err != nil && !absent:
			return exit.Usagef("attach %s: %w", at, refused)
		case err != nil:
			return err
		case !absent:
			others := ""
			if port, ok := strings.CutPrefix(parsed, "http://127.0.0.1:"); ok {
				others = " (single requests: " + Sudo("tap", port) + ")"
			}
			o.note(fmt.Sprintf("%s is watched by HTTP, not by probes%s: %v", at, others, refused))
		}
		o.Addresses[i] = parsed
	}
	if len(w.probes) == 0 {
		return nil
	}
	return DropRoot()
}

// note shows a note at the start, on the screen or without it.
func (o *Options) note(text string) {
	if o.shown {
		o.Note = text
		return
	}
	fmt.Fprintln(o.Notes, text)
}

// rootPath are the folders in which sudo finds programs, in its default settings.
var rootPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Sudo returns the command line that runs this program as root, as a user would type it.
func Sudo(args ...string) string {
	program := "llmtop"
	if self, err := os.Executable(); err == nil && !slices.Contains(rootPath, filepath.Dir(self)) {
		program = self
	}
	words := []string{"sudo"}
	for _, word := range append([]string{program}, args...) {
		words = append(words, local.Quote(word))
	}
	return strings.Join(words, " ")
}

// attachProbes attaches probes to a process.
func attachProbes(pid int, w *watcher) (*probe.Probe, error) {
	target, err := probe.InspectCUDA(pid)
	if err != nil {
		return nil, err
	}
	return probe.Open(target, w.clock, engine.Hooks{Experts: true})
}

// AtEnd returns a sink for the events of an engine that calls f when it has failed or stopped.
func AtEnd(f func(*event.EngineInfo)) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if p, ok := e.Data.(*event.EngineInfo); ok && p != nil && (p.State == event.EngineFailed || p.State == event.EngineStopped) {
			f(p)
		}
	})
}

// counted returns a sink that adds to the samples of an engine what probes count of the CUDA calls of its process. Such
// probes are then no engine of their own.
func counted(w *watcher, sink event.Sink) event.Sink {
	for at, p := range w.probes {
		if !p.CallsOnly() {
			continue
		}
		without, with := sink, p.In(sink)
		sink = event.SinkFunc(func(e event.Event) {
			if h, ok := e.Data.(*event.Host); ok && h.Engine.PID != 0 && h.Engine.PID == p.PID() {
				merge(w, at)
				with.Emit(e)
				return
			}
			without.Emit(e)
		})
	}
	return sink
}

// merge hides the engine at an address, whose process is that of another one.
func merge(w *watcher, at string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.merged[at] {
		w.merged[at], w.onScreen = true, nil
	}
}

// addProbed starts to watch a process by its probes. Without a screen its end is printed, and ends the command if
// nothing else is watched: another process never takes its place.
func addProbed(ctx context.Context, w *watcher, at string, p *probe.Probe) error {
	run := func(ctx context.Context, sink event.Sink) error {
		if !w.opt.shown {
			sink = event.Tee{sink, AtEnd(func(e *event.EngineInfo) {
				fmt.Fprintf(w.opt.Notes, "%s: %v: %s\n", at, e.State, e.Reason)
				if !w.opt.several() {
					w.stop()
				}
			})}
		}
		return errors.Join(p.Run(ctx, sink), p.Close())
	}
	inspector := host.NewInspector(p.PID)
	_, err := w.start(ctx, watched{at: at, doing: "watch " + at, run: run, inspector: inspector}, func(s *session.Session) {
		w.machine.Watch(s, w.clock, session.Known(p.PID), p.In(inspector.In(s)))
		s.Add("inspect model", inspector.Run)
	})
	if w.opt.reported {
		inspector.Watch(p.Model(), true) // reports show which experts are in memory
	}
	return err
}
