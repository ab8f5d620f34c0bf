// Package session builds sessions out of sources, a store, outputs and a screen. A Group holds the sessions of a
// command with the outputs that they share: a recording, exported metrics and alerts.
package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/timeline"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/ui"
)

// Session is a store with the sources that fill it and the other receivers of their events.
type Session struct {
	Store *store.Store

	sink       event.Tee // the store is first
	sources    []func(context.Context) error
	atEnd      []func() error // run after the last event
	recordSink event.Sink     // receives the events to record; nil: not recorded
}

// New returns a session without outputs.
func New(opt store.Options) *Session {
	s := &Session{Store: store.New(opt)}
	s.sink = event.Tee{s.Store}
	return s
}

// Add adds a source to run with the session. doing is for errors.
func (s *Session) Add(doing string, run func(context.Context, event.Sink) error) {
	s.sources = append(s.sources, func(ctx context.Context) error {
		return Guarded(doing, func() error { return run(ctx, s.sink) })()
	})
}

// AlsoTo sends the events of the session to another sink, too.
func (s *Session) AlsoTo(sink event.Sink) { s.sink = append(s.sink, sink) }

// AddUsage adds a source that samples what the engine's threads do while the session reports running requests.
func (s *Session) AddUsage(opt host.UsageOptions) {
	u := host.NewUsageSampler(opt)
	s.AlsoTo(u)
	s.Add("sample threads", u.Run)
}

// AtEnd makes the session call f after its last event.
func (s *Session) AtEnd(f func() error) { s.atEnd = append(s.atEnd, f) }

// Emit implements event.Sink. It sends an event to the store and all outputs.
func (s *Session) Emit(e event.Event) { s.sink.Emit(e) }

// EmitRecorded sends an event to the recording alone, if there is one.
func (s *Session) EmitRecorded(e event.Event) {
	if s.recordSink != nil {
		s.recordSink.Emit(e)
	}
}

// OnScreen returns the session as an engine on the screen, without actions.
func (s *Session) OnScreen(name string) ui.Session {
	out := ui.Session{Name: name, Snapshots: s.Store.Snapshot, Changed: s.Store.Changed()}
	if past := s.Store.Past(); past != nil {
		out.Past = past
	}
	return out
}

// Run starts the sources, calls body, and stops the sources when body returns. They outlive ctx, so that body can end
// requests and take a last sample when a signal ends it. Run returns the error of body, or else that of a source, which
// also ends the context of body.
func (s *Session) Run(ctx context.Context, body func(context.Context) error) error {
	outliving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	sources, sourceCtx := errgroup.WithContext(outliving)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(sourceCtx, func() { cancel(context.Cause(sourceCtx)) })
	for _, source := range s.sources {
		sources.Go(func() error { return source(sourceCtx) })
	}
	storing, closeStore := context.WithCancel(context.Background()) // outlives the sources, to store their last events
	stored := make(chan error, 1)
	go func() {
		err := Guarded("store events", func() error { return s.Store.Run(storing) })()
		if err != nil {
			stop()
		}
		stored <- err
	}()
	err := body(ctx)
	stop()
	if sourceErr := sources.Wait(); sourceErr != nil && (err == nil || sourceCtx.Err() != nil) {
		err = sourceErr
	}
	closeStore()
	return s.End(cmp.Or(<-stored, err))
}

// RunUntil is Run with a body that waits until ctx ends, and then calls last.
func (s *Session) RunUntil(ctx context.Context, last func()) error {
	return s.Run(ctx, func(running context.Context) error {
		<-running.Done()
		if ctx.Err() != nil {
			last()
		}
		return nil
	})
}

// End closes the receivers of events, and returns err joined with their errors. Run calls it.
func (s *Session) End(err error) error {
	for _, f := range s.atEnd {
		err = errors.Join(err, f())
	}
	return err
}

// Guarded returns f with panics converted to errors, so that the screen closes and restores the terminal before the
// stack is printed.
func Guarded(doing string, f func() error) func() error {
	return func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: panic: %v\n%s", doing, p, debug.Stack())
			}
		}()
		return f()
	}
}

// WithReason adds why to the introductions of an engine that have no reason of their own.
func WithReason(why string, run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
	if why == "" {
		return run
	}
	return func(ctx context.Context, sink event.Sink) error {
		return run(ctx, event.SinkFunc(func(e event.Event) {
			if p, ok := e.Data.(*event.EngineInfo); ok && p.Reason == "" {
				engine := *p
				engine.Reason = why
				e.Data = &engine
			}
			sink.Emit(e)
		}))
	}
}

// ReportAction returns the action of a screen that makes the JSON report of a snapshot.
func ReportAction(meta report.Meta) func(*store.Snapshot) ([]byte, error) {
	meta.Version = version.String()
	return func(s *store.Snapshot) ([]byte, error) {
		var out bytes.Buffer
		if err := report.FromSnapshot(meta, s).WriteJSON(&out); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
}

// TimelineAction returns the action of a screen that makes the timeline of what is kept up to a snapshot; nil if the
// store keeps nothing of its past.
func TimelineAction(of *store.Store) func(*store.Snapshot) ([]byte, error) {
	past := of.Past()
	if past == nil {
		return nil
	}
	return func(s *store.Snapshot) ([]byte, error) {
		trace := timeline.New()
		engine := trace.Engine("")
		engine.Snapshots(append(past.Until(s.Now), s))
		return Timeline(trace)
	}
}

// Timeline returns a trace as JSON.
func Timeline(trace *timeline.Trace) ([]byte, error) {
	var out bytes.Buffer
	err := trace.Write(&out, "llmtop "+version.String())
	return out.Bytes(), err
}
