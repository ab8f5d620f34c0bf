package cmd

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/source/socket"
	"github.com/llmtop/llmtop/ui"
)

// answerTimeout is how long the screen waits for a remote engine to accept a prompt or a cancellation.
const answerTimeout = 300 * time.Millisecond

// actions returns the actions of a remote engine. The engine itself announces which it accepts.
func actions(client *socket.Client, at string) ui.Actions {
	var defaults settings
	defaults.flags()
	return ui.Actions{
		Prompt: func(text, label string) (note string, err error) {
			ctx, done := context.WithTimeout(context.Background(), answerTimeout)
			defer done()
			p := defaults.params()
			_, err = client.Generate(ctx, wire.Generation{
				Prompt: text, Label: label, Text: true, MaxTokens: defaults.tokens,
				Temperature: p.Temperature, TopK: p.TopK, TopP: p.TopP, MinP: p.MinP, RepeatPenalty: p.RepeatPenalty, Seed: p.Seed,
			})
			return "", err
		},
		Cancel: func(id event.RequestID) error {
			ctx, done := context.WithTimeout(context.Background(), answerTimeout)
			defer done()
			return client.Cancel(ctx, id)
		},
		Report: reporting(report.Meta{Remote: true, Configuration: map[string]string{"attach": at}}),
	}
}

// selfSample keeps the last sample of this process.
type selfSample struct{ last atomic.Pointer[event.Host] }

// Emit implements event.Sink.
func (s *selfSample) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok {
		s.last.Store(h)
	}
}

// withSelfSample replaces the self sample in the events of a remote engine, which is about the remote llmtop, by that
// of this process.
type withSelfSample struct {
	self *selfSample
	sink event.Sink
}

// Emit implements event.Sink.
func (w withSelfSample) Emit(e event.Event) {
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
