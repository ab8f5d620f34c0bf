package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/otlp"
)

// traceFlags are the flags that receive traces of servers.
type traceFlags struct {
	at string // "": off
}

func (t *traceFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&t.at, "otlp", "", "receive OpenTelemetry traces of servers at http://`HOST:PORT`/v1/traces")
}

func (t *traceFlags) check() error {
	if t.at == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", t.at); err != nil {
		return usagef("--otlp %q: must be HOST:PORT", t.at)
	}
	return nil
}

// traceBacklog is how long before the start of a session its events may begin: the load of a model, and running
// requests.
const traceBacklog = time.Hour

// clock returns the clock of a session, which starts earlier if it receives traces.
func (t *traceFlags) clock() engine.Clock {
	if t.at == "" {
		return engine.NewClock()
	}
	return engine.NewClockSince(traceBacklog)
}

// open starts to listen.
func (t *traceFlags) open(secret string, allow []string, clock engine.Clock) (*otlp.Receiver, error) {
	receiver, err := otlp.New(otlp.Options{Listen: t.at, Token: secret, Allow: allow, Clock: clock})
	switch {
	case errors.Is(err, otlp.ErrToken):
		return nil, usagef("%w: add --token-file FILE, or listen at 127.0.0.1", err)
	case err != nil:
		return nil, usageError{err}
	}
	return receiver, nil
}

// addTraces adds the receiver of traces as an engine.
func (a *attached) addTraces(ctx context.Context) error {
	receiver, err := a.opt.traces.open(a.token, a.opt.exports.allow, a.clock)
	if err != nil {
		return err
	}
	at := receiver.Address()
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets})
	a.alerts.watch(s, a.alertName(at))
	if err := a.record(s, recording.EngineEntry{Name: at}); err != nil {
		return errors.Join(err, receiver.Close())
	}
	s.add("receive traces", withReason(a.opt.note, receiver.Run))
	if a.opt.headless {
		a.machine.add("", selfOnly{s.sink}) // the report includes llmtop's own usage
		fmt.Fprintf(a.opt.notes, "listening: %s\n", at)
	}
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: at, session: s, hostUnknown: true})
	return nil
}
