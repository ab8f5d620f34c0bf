package child

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// TestSteering cancels requests and changes the pace of a child.
func TestSteering(t *testing.T) {
	r := start(t, job{Pace: 0.01})
	h := r.ask(t, "Call me Ishmael.", 20)
	queued := r.ask(t, "whale (noun):", 20)
	eventtest.Wait(t, "first token", func() bool { return len(r.OfKind(event.KindToken)) > 0 })
	queued.Cancel()
	if result := queued.Result(); result.State != event.StateCancelled || result.Generated != 0 {
		t.Errorf("cancelled in the queue: %+v", result)
	}
	r.SetPace(0)
	if result := h.Result(); result.State != event.StateFinished || result.Generated != 20 {
		t.Errorf("at another pace: %+v", result)
	}
	r.SetPace(0.01)
	if _, err := r.Encode(t.Context(), "a"); err != nil { // the pace is set: requests take another way to the engine
		t.Fatal(err)
	}
	h = r.ask(t, "Call me Ishmael.", 20)
	eventtest.Wait(t, "running", func() bool { return len(r.OfKind(event.KindToken)) > 20 })
	r.Cancel(h.ID)
	if result := h.Result(); result.State != event.StateCancelled || result.Generated == 0 || len(result.IDs) != result.Generated {
		t.Errorf("cancelled while it ran: %+v", result)
	}
	if h.Cancel(); len(r.OfKind(event.KindLog)) == 0 {
		t.Error("the engine's log has not come")
	}
}

// TestRefusals checks that the errors of rejected requests are those of the scheduler.
func TestRefusals(t *testing.T) {
	r := start(t, job{Pace: 0.01})
	if _, err := r.Submit(engine.Request{}); !errors.Is(err, engine.ErrEmptyPrompt) {
		t.Errorf("empty prompt: %v", err)
	}
	long, err := r.Submit(engine.Request{Text: strings.Repeat("and ", 200_000)})
	if err != nil {
		t.Fatal(err)
	}
	if result := long.Result(); !errors.Is(result.Err, engine.ErrPromptTooLong) {
		t.Errorf("long prompt: %+v", result)
	}
	if _, err := r.Submit(engine.Request{Text: strings.Repeat("x", wire.MaxControl)}); err == nil || strings.Contains(err.Error(), "unix:") {
		t.Errorf("a prompt that no message can hold: %v", err)
	}
	for range engine.DefaultQueue + 2 {
		if _, err = r.Submit(engine.Request{Text: "a"}); err != nil {
			break
		}
		eventtest.Wait(t, "dispatched", func() bool { return len(r.OfKind(event.KindToken)) > 0 })
	}
	if !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("full queue: %v", err)
	}
	r.end()
	<-r.ended
	if _, err := r.Submit(engine.Request{Text: "a"}); !errors.Is(err, engine.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	if all := r.OfKind(event.KindRequest); all[len(all)-1].State != event.StateCancelled {
		t.Errorf("the last request is %v", all[len(all)-1].State)
	}
}

// TestControl controls a child on behalf of attached clients.
func TestControl(t *testing.T) {
	r := start(t, job{Pace: 0.01})
	control := func(m wire.Control) (event.RequestID, error) { return r.Control(&m) }
	if _, err := control(wire.Control{Type: wire.Pause}); err != nil {
		t.Error(err)
	}
	eventtest.Wait(t, "paused", func() bool { return r.engine().State == event.EnginePaused })
	id, err := control(wire.Control{Type: wire.Generate, Generation: wire.Generation{Prompt: "a", MaxTokens: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []wire.Control{{Type: wire.Hooks, On: wire.Measure{Stages: true}}, {Type: wire.Resume}} {
		if _, err := control(m); err != nil {
			t.Error(err)
		}
	}
	eventtest.Wait(t, "token", func() bool { return len(r.OfKind(event.KindToken)) > 0 })
	if _, err := control(wire.Control{Type: wire.Cancel, Req: id}); err != nil {
		t.Error(err)
	}
	eventtest.Wait(t, "cancelled", func() bool {
		all := r.OfKind(event.KindRequest)
		return all[len(all)-1].State == event.StateCancelled
	})
	if _, err := control(wire.Control{Type: wire.Sample, Every: 2}); err == nil {
		t.Error("sampling of router picks is offered, but no test covers it")
	}
}

// TestEncode asks a child for token ids.
func TestEncode(t *testing.T) {
	r := start(t, job{})
	e, err := native.OpenDemo(native.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, text := range []string{"", "Call me Ishmael.", strings.Repeat("whale — ", 40_000/eventtest.Step(10))} {
		got, err := r.Encode(t.Context(), text)
		if diff := cmp.Diff(e.Encode(nil, text, false), got); err != nil || diff != "" {
			t.Errorf("%v, %.200s", err, diff)
		}
		size, context, err := r.Size(t.Context(), text)
		if err != nil || size != len(e.Encode(nil, text, true)) || context != 128 {
			t.Errorf("%d tokens of %d, %v", size, context, err)
		}
	}
	r.end()
	<-r.ended
	if _, _, err := r.Size(t.Context(), "a"); !errors.Is(err, engine.ErrStopped) {
		t.Errorf("the size of a text after the end: %v", err)
	}
	if _, err := r.Encode(t.Context(), "a"); !errors.Is(err, engine.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

// FuzzAnswers reads arbitrary output between answers.
func FuzzAnswers(f *testing.F) {
	f.Add("some log\n", "no line end")
	f.Add("\x00{}\n\x00\n", "\x00{\"call\":1,\"ids\":[9]}")
	f.Fuzz(func(t *testing.T, before, after string) {
		j := &journal{now: func() event.Time { return 0 }}
		p, from := new(Process), make(chan answer, 1)
		p.waiting.Store(uint64(1), from)
		out := j.stream(p.answered)
		_, _ = out.Write([]byte(before))
		(&answer{Call: 1, IDs: []int32{7}}).write(out)
		_, _ = out.Write([]byte(after))
		if len(from) == 0 {
			t.Fatal("the answer has not come")
		}
		j.end()
	})
}
