package cmd

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
)

// local is a session with an engine that runs inside this program.
type local struct {
	*session
	scheduler *runtime.Scheduler
	sampler   *host.Sampler
}

// newLocal prepares one. also, unless it is nil, sees every event besides the store; onRequest is told of every request that ends.
func (o *runOptions) newLocal(also event.Sink, onRequest func(*store.Request)) (*local, error) {
	clock := runtime.NewClock()
	recorder, recorded, err := o.recording.open(clock)
	if err != nil {
		return nil, err
	}
	l := &local{
		session:   newSession(store.Options{Now: clock.Now, TTFTTarget: o.ttftTarget, OnRequest: onRequest}),
		scheduler: o.scheduler(clock),
	}
	l.recorder = recorder
	for _, sink := range []event.Sink{also, recorded} {
		if sink != nil {
			l.sink = append(l.sink, sink)
		}
	}
	l.sampler = host.New(host.Options{Clock: clock, EngineThreads: l.scheduler.Threads})
	l.add("run engine", l.scheduler.Run)
	l.add("sample host", l.sampler.Run)
	return l, nil
}
