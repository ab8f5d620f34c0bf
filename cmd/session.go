package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/ui"
)

// session is a store with the sources that fill it and the other receivers of their events.
type session struct {
	store      *store.Store
	sink       event.Tee // the store is first
	sources    []namedSource
	atEnd      []func() error      // run after the last event
	recorder   *recording.Recorder // of this session alone; nil: not recorded, or recorded with others
	recordSink event.Sink          // receives the events to record; nil: not recorded
	alerts     *alerting           // nil: no rules

	collector *report.Collector // nil: no report, or another collector
}

// namedSource is an engine.Source with a description for errors.
type namedSource struct {
	doing string
	run   func(context.Context, event.Sink) error
}

func newSession(opt store.Options) *session {
	s := &session{store: store.New(opt)}
	s.sink = event.Tee{s.store}
	return s
}

// add adds a source to run with the session.
func (s *session) add(doing string, run func(context.Context, event.Sink) error) {
	s.sources = append(s.sources, namedSource{doing, run})
}

// record records the session if --record is set.
func (s *session) record(r *recordFlags, clock engine.Clock) error {
	recorder, sink, err := r.open(clock)
	if err != nil || recorder == nil {
		return err
	}
	s.recorder, s.recordSink = recorder, sink
	s.sink = append(s.sink, sink)
	s.atEnd = append(s.atEnd, func() error { return closeRecorder(recorder) })
	return nil
}

// history returns the history of the session to go back in time, nil if there is none.
func (s *session) history() ui.Past {
	if trip := s.store.HistoryReader(); trip != nil {
		return trip
	}
	return nil
}

// recordStatus returns the state of the recording, if there is one.
func (s *session) recordStatus() (recording.RecordStatus, bool) {
	if s.recorder == nil {
		return recording.RecordStatus{}, false
	}
	return s.recorder.Status(), true
}

// run starts the sources, calls body, and stops the sources when body returns. It returns the error of body, or else
// that of a source, which also ends the context of body.
func (s *session) run(ctx context.Context, body func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sources, sourceCtx := errgroup.WithContext(ctx)
	for _, source := range s.sources {
		sources.Go(guarded(source.doing, func() error { return source.run(sourceCtx, s.sink) }))
	}
	storeCtx, closeStore := context.WithCancel(context.Background()) // outlives the sources, to store their last events
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

// end closes the receivers of events.
func (s *session) end() (err error) {
	for _, f := range s.atEnd {
		err = errors.Join(err, f())
	}
	return err
}

// guarded returns f with panics converted to errors, so that the screen closes and restores the terminal before the
// stack is printed.
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
