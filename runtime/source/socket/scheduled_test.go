package socket

import (
	"context"
	"errors"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// builtIn runs the built-in engine behind a socket and attaches to it.
func builtIn(t *testing.T, got *log) *Client {
	t.Helper()
	clock := engine.NewClock()
	load := func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
		return native.OpenDemo(native.Options{Threads: 1, Context: 512, Report: report})
	}
	engine := engine.New(load, engine.Options{Clock: clock, Sampler: native.NewSampler})
	s := server(t, path(t), Options{Clock: clock, Controller: Scheduled(engine)})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	c := attach(t, s.Address(), "", got)
	eventtest.Wait(t, "a loaded model", func() bool { return c.Offers().Has(event.CapPrompt) && len(got.OfKind(event.KindModel)) == 1 })
	return c
}

// last returns the newest state of a request.
func (l *log) last(id event.RequestID) (s event.State) {
	for _, e := range l.OfKind(event.KindRequest) {
		if e.Req == id {
			s = e.State
		}
	}
	return s
}

// tokens returns the token events of a request.
func (l *log) tokens(id event.RequestID) (out []event.Event) {
	for _, e := range l.OfKind(event.KindToken) {
		if e.Req == id {
			out = append(out, e)
		}
	}
	return out
}

// TestTextIsOff: text is sent only if the reader requests it with its request; ids and counts are always sent.
func TestTextIsOff(t *testing.T) {
	var got log
	c := builtIn(t, &got)
	for _, text := range []bool{false, true} {
		id, err := c.Generate(t.Context(), wire.Generation{Prompt: "Call me Ishmael.", MaxTokens: 8, IgnoreEOS: true, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		eventtest.Wait(t, "the end", func() bool { return got.last(id) == event.StateFinished })
		pieces, tokens := "", got.tokens(id)
		for _, e := range tokens {
			pieces += e.Text
		}
		if len(tokens) != 8 || tokens[7].ID <= 0 || (pieces != "") != text {
			t.Errorf("text %v: %d tokens, %q", text, len(tokens), pieces)
		}
		for _, e := range got.OfKind(event.KindRequest) {
			if p, ok := e.Data.(*event.Request); ok && e.Req == id && (p.Prompt != "") != text {
				t.Errorf("text %v: the prompt is %q", text, p.Prompt)
			}
		}
	}
}

// TestSampling: it is offered for engines that are known to support it, even before they are loaded.
func TestSampling(t *testing.T) {
	s := engine.New(nil, engine.Options{Engine: event.EngineInfo{Caps: event.CapSample}})
	c := Scheduled(s)
	if !c.Controls().Has(event.CapSample|event.CapHooks) || Scheduled(engine.New(nil, engine.Options{})).Controls().Has(event.CapSample) {
		t.Errorf("controls are %b", c.Controls())
	}
	if _, err := c.Control(&wire.Control{Type: wire.Sample}); err == nil {
		t.Error("1 step of 0 was accepted")
	}
	for _, m := range []wire.Control{{Type: wire.Sample, Every: 7}, {Type: wire.Hooks, On: wire.Measure{Experts: true}}} {
		if _, err := c.Control(&m); err != nil {
			t.Fatal(err)
		}
	}
	s.ChangeHooks(func(h *engine.Hooks) {
		if want := (engine.Hooks{Experts: true, Every: 7}); *h != want {
			t.Errorf("hooks are %+v, want %+v", *h, want)
		}
	})
}

// TestSteeringAScheduler: offered messages work, and others are refused before they are sent.
func TestSteeringAScheduler(t *testing.T) {
	var got log
	c := builtIn(t, &got)
	ctx := t.Context()
	if err := c.Sample(ctx, 4); !errors.Is(err, ErrNotOffered) {
		t.Errorf("sampling: %v", err)
	}
	if _, err := c.Generate(ctx, wire.Generation{}); err == nil {
		t.Error("an empty prompt was accepted")
	}
	if err := c.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	state := func() event.EngineState {
		all := got.OfKind(event.KindEngine)
		return all[len(all)-1].Data.(*event.EngineInfo).State
	}
	eventtest.Wait(t, "the pause", func() bool { return state() == event.EnginePaused })
	id, err := c.Generate(ctx, wire.Generation{Prompt: "whale", MaxTokens: 300, IgnoreEOS: true, Picks: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Hooks(ctx, wire.Measure{Stages: true, Experts: true, Picks: true}); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "the queue", func() bool { return got.last(id) == event.StateQueued })
	if n := len(got.tokens(id)); n > 0 {
		t.Errorf("%d tokens in a pause", n)
	}
	if err := c.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "tokens", func() bool { return len(got.tokens(id)) > 4 })
	if e := got.tokens(id)[2]; len(e.Picks) == 0 {
		t.Errorf("no picks with a token: %+v", e)
	}
	second, err := c.Generate(ctx, wire.Generation{Prompt: "whale", MaxTokens: 400, IgnoreEOS: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cancel(ctx, second); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "the end of both", func() bool {
		return got.last(id) == event.StateFinished && got.last(second) == event.StateCancelled
	})
}
