package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/otlp"
)

// traces is what a command is told about the traces that servers send.
type traces struct {
	at string // "": none are taken
}

func (t *traces) bind(set *pflag.FlagSet) {
	set.StringVar(&t.at, "otlp", "", "take the traces that servers send to http://HOST:PORT/v1/traces, for example 127.0.0.1:4318")
}

func (t *traces) check() error {
	if t.at == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", t.at); err != nil {
		return usagef("--otlp %q: write HOST:PORT", t.at)
	}
	return nil
}

// before is how long before it begins a session may be told of: of the load of a model, and of requests that ran on.
const before = time.Hour

// clock is the one of a session that takes traces.
func (t *traces) clock() runtime.Clock {
	if t.at == "" {
		return runtime.NewClock()
	}
	return runtime.NewClockSince(before)
}

// open begins to listen.
func (t *traces) open(secret string, clock runtime.Clock) (*otlp.Receiver, error) {
	receiver, err := otlp.New(otlp.Options{Listen: t.at, Token: secret, Clock: clock})
	switch {
	case errors.Is(err, otlp.ErrToken):
		return nil, usagef("%w: give --token-file, or listen at 127.0.0.1", err)
	case err != nil:
		return nil, usageError{err}
	}
	return receiver, nil
}

// addTraces begins to take traces, as an engine among the others.
func (a *attached) addTraces(ctx context.Context) error {
	receiver, err := a.opt.traces.open(a.token, a.clock)
	if err != nil {
		return err
	}
	at := receiver.Address()
	s := a.session(at, store.Options{Now: a.clock.Now, Targets: a.opt.targets})
	a.alerts.over(s, a.called(at))
	if err := a.record(s, trace.Source{Name: at}); err != nil {
		return errors.Join(err, receiver.Close())
	}
	s.add("receive traces", because(a.opt.note, receiver.Run))
	if a.opt.headless {
		a.machine.add("", selfOnly{s.sink}) // what llmtop itself takes is in the report
		fmt.Fprintf(a.opt.notes, "listening: %s\n", at)
	}
	a.group.Go(func() error { return a.watch(ctx, s, at) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: at, session: s, elsewhere: true})
	return nil
}
