package cmd

import (
	"context"
	"errors"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// local is a session with an engine that llmtop runs, in its own process or in a child process.
type local struct {
	*session
	clock     engine.Clock // of the events
	scheduler scheduler
	sampler   *host.Sampler
	server    *socket.Server // nil: no --listen

	mu    sync.Mutex
	notes string // since the last call of takeNotice
}

// notify reports a remark about a prompt: in the log, and below the input if the prompt was typed.
func (l *local) notify(words string) {
	l.sink.Emit(event.Event{Kind: event.KindLog, At: l.clock.Now(), Layer: -1, Text: words})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = words
}

// takeNotice returns the last remark and clears it.
func (l *local) takeNotice() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.notes
	l.notes = ""
	return words
}

// scheduler is an engine.Scheduler, or its counterpart for another process or machine.
type scheduler interface {
	engine.Source
	engine.Runner
	Encode(ctx context.Context, text string) ([]int32, error)
}

// newLocal creates a local session. also, unless nil, gets every event; onRequest is called for every request that
// ends.
func (o *runOptions) newLocal(ctx context.Context, also event.Sink, onRequest func(*store.Request)) (*local, error) {
	x, err := o.exports.open(o.listening.tokenFile)
	if err != nil {
		return nil, err
	}
	clock := engine.NewClock()
	l := &local{clock: clock, session: x.session(o.exports.engine(), store.Options{Now: clock.Now, Targets: o.targets, OnRequest: onRequest, History: o.exports.historyBytes(store.DefaultHistory)})}
	l.sink[0] = o.view.dropCastText(l.sink[0])
	l.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	l.alerts.watch(l.session, "")
	l.atEnd = append(l.atEnd, x.close, l.alerts.close)
	if also != nil {
		l.sink = append(l.sink, also)
	}
	controller, err := l.addEngine(o)
	if err == nil {
		err = l.listen(ctx, o, controller)
	}
	if err == nil {
		err = l.record(&o.recording, clock)
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// addEngine adds the engine (native, in a child process, or remote) and the sampler of its process.
func (l *local) addEngine(o *runOptions) (controller socket.Controller, err error) {
	if o.addRemoteEngine != nil {
		return nil, o.addRemoteEngine(l)
	}
	if o.chosen, err = o.choose(); err != nil {
		return nil, err
	}
	if !o.choice.isolated && o.chosen.name == engineNative {
		s := o.scheduler(l.clock)
		l.scheduler = s
		l.sampler = host.New(host.Options{Clock: l.clock, EngineThreads: s.Threads, NoCopy: o.quiet})
		l.add("run engine", withReason(o.reasons(), s.Run))
		l.add("sample host", l.sampler.Run)
		return socket.Scheduled(s), nil
	}
	p, err := o.startChild(l.clock)
	if err != nil {
		return nil, err
	}
	l.scheduler = p
	l.atEnd = append(l.atEnd, p.Close)
	l.sampler = host.New(host.Options{Clock: l.clock, PID: p.PID(), NoCopy: o.quiet})
	l.add("run engine", withReason(o.reasons(), deferCrash(p.Run)))
	l.add("sample host", l.sampler.Run)
	return p.Controller(), nil
}

// listen starts the socket server if --listen is set.
func (l *local) listen(ctx context.Context, o *runOptions, controller socket.Controller) error {
	server, err := o.listening.open(ctx, l.clock, o.engine(), controller)
	if err != nil || server == nil {
		return err
	}
	l.server = server
	l.sink, l.atEnd = append(l.sink, server), append(l.atEnd, server.Close)
	return nil
}
