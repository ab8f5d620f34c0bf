package cmd

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/socket"
)

// local is a session with an engine that runs inside this program.
type local struct {
	*session
	clock     runtime.Clock // of its events
	scheduler *runtime.Scheduler
	sampler   *host.Sampler
	server    *socket.Server // nil: nobody else watches
}

// newLocal prepares one. also, unless it is nil, sees every event besides the store; onRequest is told of every request that ends.
func (o *runOptions) newLocal(also event.Sink, onRequest func(*store.Request)) (*local, error) {
	clock := runtime.NewClock()
	l := &local{
		clock:     clock,
		session:   newSession(store.Options{Now: clock.Now, TTFTTarget: o.ttftTarget, OnRequest: onRequest}),
		scheduler: o.scheduler(clock),
	}
	if also != nil {
		l.sink = append(l.sink, also)
	}
	server, watched, err := o.listening.open(clock, o.engine(), l.scheduler)
	if err != nil {
		return nil, err
	}
	if server != nil {
		l.server = server
		l.sink, l.atEnd = append(l.sink, watched), append(l.atEnd, server.Close)
	}
	if err := l.record(&o.recording, clock); err != nil {
		return nil, errors.Join(err, l.end())
	}
	l.sampler = host.New(host.Options{Clock: clock, EngineThreads: l.scheduler.Threads})
	l.add("run engine", l.scheduler.Run)
	l.add("sample host", l.sampler.Run)
	return l, nil
}
