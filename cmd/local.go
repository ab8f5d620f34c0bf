package cmd

import (
	"context"
	"errors"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/socket"
)

// local is a session with an engine that this program runs, in its own process or in another one.
type local struct {
	*session
	clock     runtime.Clock // of its events
	scheduler scheduler
	sampler   *host.Sampler
	server    *socket.Server // nil: nobody else watches

	mu    sync.Mutex
	notes string // since the last call of noted
}

// note tells the user something about a question, in the log and, if it was typed, at once.
func (l *local) note(words string) {
	l.sink.Emit(event.Event{Kind: event.KindLog, At: l.clock.Now(), Layer: -1, Text: words})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = words
}

// noted is what was told last, and not asked for since.
func (l *local) noted() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.notes
	l.notes = ""
	return words
}

// scheduler is a runtime.Scheduler or what stands for one in another process.
type scheduler interface {
	runtime.Source
	runtime.Runner
	Encode(ctx context.Context, text string) ([]int32, error)
}

// newLocal prepares one. also, unless it is nil, sees every event besides the store; onRequest is told of every request that ends.
func (o *runOptions) newLocal(also event.Sink, onRequest func(*store.Request)) (*local, error) {
	x, err := o.exports.open(o.listening.tokenFile)
	if err != nil {
		return nil, err
	}
	clock := runtime.NewClock()
	l := &local{clock: clock, session: x.session(o.exports.engine(), store.Options{Now: clock.Now, Targets: o.targets, OnRequest: onRequest, History: o.exports.history(store.DefaultHistory)})}
	l.sink[0] = o.view.hush(l.sink[0])
	l.alerts = newAlerting(o.tables.alerts, o.exports.screen, false)
	l.alerts.over(l.session, "")
	l.atEnd = append(l.atEnd, x.close, l.alerts.close)
	if also != nil {
		l.sink = append(l.sink, also)
	}
	controller, err := l.engage(o)
	if err == nil {
		err = l.listen(o, controller)
	}
	if err == nil {
		err = l.record(&o.recording, clock)
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// engage adds the engine, in a process of its own or elsewhere if that is wanted, and what samples its process.
func (l *local) engage(o *runOptions) (controller socket.Controller, err error) {
	if o.elsewhere != nil {
		return nil, o.elsewhere(l)
	}
	if o.chosen, err = o.choose(); err != nil {
		return nil, err
	}
	if !o.choice.isolated && o.chosen.name == engineNative {
		s := o.scheduler(l.clock)
		l.scheduler = s
		l.sampler = host.New(host.Options{Clock: l.clock, EngineThreads: s.Threads, NoCopy: o.quiet})
		l.add("run engine", because(o.why(), s.Run))
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
	l.add("run engine", because(o.why(), lasting(p.Run)))
	l.add("sample host", l.sampler.Run)
	return p.Controller(), nil
}

// listen lets others watch, if that is wanted.
func (l *local) listen(o *runOptions, controller socket.Controller) error {
	server, watched, err := o.listening.open(l.clock, o.engine(), controller)
	if err != nil || server == nil {
		return err
	}
	l.server = server
	l.sink, l.atEnd = append(l.sink, watched), append(l.atEnd, server.Close)
	return nil
}
