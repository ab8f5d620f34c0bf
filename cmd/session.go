package cmd

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
)

// session is one run of an engine with the sources beside it and the store that they fill.
type session struct {
	scheduler *runtime.Scheduler
	sampler   *host.Sampler
	store     *store.Store
	sink      event.Sink
}

// newSession prepares a run. also is a sink that sees every event besides the store; onRequest is told of every request that ends.
func (o *runOptions) newSession(also event.Sink, onRequest func(*store.Request)) *session {
	clock := runtime.NewClock()
	s := &session{
		scheduler: o.scheduler(clock),
		store:     store.New(store.Options{Now: clock.Now, TTFTTarget: o.ttftTarget, OnRequest: onRequest}),
	}
	s.sampler = host.New(host.Options{Clock: clock, EngineThreads: s.scheduler.Threads})
	s.sink = s.store
	if also != nil {
		s.sink = event.Tee{s.store, also}
	}
	return s
}

// run starts the engine and everything beside it, calls body, and ends them all when body returns. The error is body's, or else that
// of the engine, which also ends the context that body gets.
func (s *session) run(ctx context.Context, body func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sources, sourceCtx := errgroup.WithContext(ctx)
	sources.Go(func() error { return s.scheduler.Run(sourceCtx, s.sink) })
	sources.Go(guarded("sample host", func() error { return s.sampler.Run(sourceCtx, s.sink) }))
	storeCtx, closeStore := context.WithCancel(context.Background()) // outlives the sources, whose last events it takes
	var storing errgroup.Group
	storing.Go(func() error {
		err := guarded("store events", func() error { return s.store.Run(storeCtx) })()
		if err != nil {
			stop()
		}
		return err
	})

	err := body(sourceCtx)
	stop()
	if engineErr := sources.Wait(); engineErr != nil && (err == nil || sourceCtx.Err() != nil) {
		err = engineErr
	}
	closeStore()
	if storeErr := storing.Wait(); storeErr != nil {
		err = storeErr
	}
	return err
}

// guarded makes an error of a panic in f, so that the screen closes in order and gives the terminal back before the stack is printed.
func guarded(doing string, f func() error) func() error {
	return func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: panic: %v\n%s", doing, p, debug.Stack())
			}
		}()
		return f()
	}
}
