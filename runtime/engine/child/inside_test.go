package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// facts returns the time-independent parts of the request events in order, then those of the forward passes in order. A
// socket keeps no order between tokens and passes that follow each other: they share lines by kind.
func (l *log) facts(t testing.TB) (out []string) {
	t.Helper()
	var steps []string
	for _, e := range l.All() {
		switch e.Kind {
		case event.KindRequest:
			out = append(out, fmt.Sprint(e.Req, e.State, fmt.Sprintf("%+v", e.Data)))
		case event.KindStage:
			if e.Stage != event.StagePace {
				out = append(out, fmt.Sprint(e.Req, e.Stage, e.Layer, e.N))
			}
		case event.KindToken:
			out = append(out, fmt.Sprint(e.Req, e.ID, e.Index, e.N, e.Step, e.Text, e.HasLogP, e.LogP, e.Top, e.Picks))
		case event.KindStep:
			steps = append(steps, fmt.Sprint(e.Step, e.N, e.Prompt))
		case event.KindModel:
			out = append(out, fmt.Sprintf("%+v", e.Data))
		}
	}
	out = append(out, steps...)
	for i, s := range out { // pointers are printed as such
		out[i] = strings.ReplaceAll(s, "&", "")
	}
	return out
}

// requests returns the requests of the test below.
func requests() []engine.Request {
	params := engine.Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, Seed: 1<<63 + 5}
	return []engine.Request{
		{Text: "Call me Ishmael.", MaxTokens: 24, Params: params, SendText: true, Label: "novel", Group: "a"},
		{Text: "Fellow citizens — of the “Senate”", MaxTokens: 9, SendText: true, TopLogprobs: 3, Picks: true, IgnoreEOS: true},
		{IDs: []int32{5, 9, 80}, MaxTokens: 4, Probe: true, SendText: true},
		{Text: strings.Repeat("a prompt that does not fit ", 200), MaxTokens: 4},
	}
}

// TestSameAsInProcess runs the same requests on the same engine in this process and in a child. All events must be equal.
func TestSameAsInProcess(t *testing.T) {
	out := start(t, job{Slots: 2})
	in := &running{log: &log{}}
	s := engine.New(job{Slots: 2}.load, job{}.options())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, in.log) }()
	eventtest.Wait(t, "ready", func() bool { return in.engine().State == event.EngineReady })

	for i, r := range requests() {
		var results [2]engine.Result
		for k, runner := range []engine.Runner{s, out} {
			h, err := runner.Submit(r)
			if err != nil {
				t.Fatal(err)
			}
			results[k] = h.Result()
		}
		if a, b := results[0].Err, results[1].Err; fmt.Sprint(a) != fmt.Sprint(b) || (b != nil) != errors.Is(b, engine.ErrPromptTooLong) {
			t.Errorf("request %d: error %v inside, %v outside", i, a, b)
		}
		results[0].Err, results[1].Err = nil, nil
		if diff := cmp.Diff(results[0], results[1]); diff != "" {
			t.Errorf("request %d: inside less outside: %s", i, diff)
		}
	}
	cancel()
	out.end()
	if err := errors.Join(<-ended, <-out.ended); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(in.facts(t), out.facts(t)); diff != "" {
		t.Errorf("events inside less outside: %s", diff)
	}
	loading := ""
	for _, e := range out.OfKind(event.KindEngine) {
		if engine := e.Data.(*event.EngineInfo); engine.State == event.EngineLoading && engine.Reason != "" {
			loading += engine.Reason + ";"
		}
	}
	if loading != "a quarter;half of it;" {
		t.Errorf("load progress %q", loading)
	}
	inside, outside := in.engine(), out.engine()
	if outside.PID == os.Getpid() || outside.PID != out.PID() {
		t.Errorf("the engine's pid is %d, that of its process %d", outside.PID, out.PID())
	}
	inside.PID, outside.PID, inside.Epoch, outside.Epoch, inside.Caps, outside.Caps = 0, 0, 0, 0, 0, 0
	if diff := cmp.Diff(inside, outside); diff != "" {
		t.Errorf("engine inside less outside: %s", diff)
	}
}

// TestEveryEventArrives compares the child's results with the received events, over some thousand events.
func TestEveryEventArrives(t *testing.T) {
	r := start(t, job{Slots: 4})
	var handles []*engine.Handle
	for i := range 16 {
		handles = append(handles, r.ask(t, fmt.Sprint("number ", i), 100))
	}
	for _, h := range handles {
		result := h.Result()
		if result.State != event.StateFinished || len(result.IDs) != 100 {
			t.Errorf("request %d is %v (%v) with %d tokens", h.ID, result.State, result.Err, len(result.IDs))
		}
	}
	r.end()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	next := map[event.RequestID]int32{}
	for _, e := range r.OfKind(event.KindToken) {
		if e.Index != next[e.Req] {
			t.Fatalf("token %d of request %d arrived, want %d", e.Index, e.Req, next[e.Req])
		}
		next[e.Req]++
	}
	if len(r.OfKind(event.KindDrops)) > 0 || r.engine().Remote != (event.Remote{}) || r.engine().State != event.EngineStopped {
		t.Errorf("dropped events %v, engine %+v", r.OfKind(event.KindDrops), r.engine())
	}
}
