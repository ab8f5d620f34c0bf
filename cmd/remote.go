package cmd

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/socket"
	"github.com/llmtop/llmtop/ui"
)

// answerWithin is how long the screen waits for an engine elsewhere to take a prompt or a cancellation.
const answerWithin = 300 * time.Millisecond

// actions are what an engine elsewhere can be asked for. It says itself which of them it takes.
func actions(client *socket.Client, at string) ui.Actions {
	var defaults settings
	defaults.flags()
	return ui.Actions{
		Prompt: func(text, label string) (note string, err error) {
			ctx, done := context.WithTimeout(context.Background(), answerWithin)
			defer done()
			p := defaults.params()
			_, err = client.Generate(ctx, wire.Generation{
				Prompt: text, Label: label, Text: true, MaxTokens: defaults.tokens,
				Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, RepeatPenalty: p.RepeatPenalty, Seed: p.Seed,
			})
			return "", err
		},
		Cancel: func(id event.RequestID) error {
			ctx, done := context.WithTimeout(context.Background(), answerWithin)
			defer done()
			return client.Cancel(ctx, id)
		},
		Report: reporting(report.Meta{Elsewhere: true, Configuration: map[string]string{"attach": at}}),
	}
}

// self is the sink of a sampler of this very process; it keeps the last sample.
type self struct{ last atomic.Pointer[event.Host] }

// Emit implements event.Sink.
func (s *self) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok {
		s.last.Store(h)
	}
}

// withSelf is a sink for the events of an engine elsewhere. What they say of llmtop's own process is about the one over there; here it
// is this one.
type withSelf struct {
	self *self
	sink event.Sink
}

// Emit implements event.Sink.
func (w withSelf) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		here := *h
		here.Self = event.Process{}
		if own := w.self.last.Load(); own != nil {
			here.Self = own.Self
		}
		e.Data = &here
	}
	w.sink.Emit(e)
}
