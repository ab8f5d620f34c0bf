package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/ui"
)

// session is a store with the sources that fill it and what else sees their events.
type session struct {
	store    *store.Store
	sink     event.Tee // the store first
	sources  []source
	atEnd    []func() error  // after the last event
	recorder *trace.Recorder // of this session alone; nil: it is not recorded, or with others
	tape     event.Sink      // what records it; nil: nothing does
	alerts   *alerting       // nil: there are no rules

	collector *report.Collector // nil: nobody reports, or another collects
}

// source is a runtime.Source with what it does in a word or two.
type source struct {
	doing string
	run   func(context.Context, event.Sink) error
}

func newSession(opt store.Options) *session {
	s := &session{store: store.New(opt)}
	s.sink = event.Tee{s.store}
	return s
}

// add has a source run with the session.
func (s *session) add(doing string, run func(context.Context, event.Sink) error) {
	s.sources = append(s.sources, source{doing, run})
}

// record has the session recorded, if that is wanted.
func (s *session) record(r *recording, clock runtime.Clock) error {
	recorder, sink, err := r.open(clock)
	if err != nil || recorder == nil {
		return err
	}
	s.recorder, s.tape = recorder, sink
	s.sink = append(s.sink, sink)
	s.atEnd = append(s.atEnd, func() error { return finish(recorder) })
	return nil
}

// past begins to look at what has been, nil if nothing is remembered.
func (s *session) past() ui.Past {
	if trip := s.store.Travel(); trip != nil {
		return trip
	}
	return nil
}

// recorded is how the recording goes, if there is one.
func (s *session) recorded() (trace.RecordStatus, bool) {
	if s.recorder == nil {
		return trace.RecordStatus{}, false
	}
	return s.recorder.Status(), true
}

// run starts the sources, calls body, and ends them all when body returns. The error is body's, or else that of a source, which also
// ends the context that body gets.
func (s *session) run(ctx context.Context, body func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sources, sourceCtx := errgroup.WithContext(ctx)
	for _, source := range s.sources {
		sources.Go(guarded(source.doing, func() error { return source.run(sourceCtx, s.sink) }))
	}
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
	if sourceErr := sources.Wait(); sourceErr != nil && (err == nil || sourceCtx.Err() != nil) {
		err = sourceErr
	}
	closeStore()
	if storeErr := storing.Wait(); storeErr != nil {
		err = storeErr
	}
	return errors.Join(err, s.end())
}

// end closes what has taken events.
func (s *session) end() (err error) {
	for _, f := range s.atEnd {
		err = errors.Join(err, f())
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
