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
	"github.com/llmtop/llmtop/runtime"
)

// facts are what does not depend on time in the events of requests, in order.
func (l *log) facts(t testing.TB) (out []string) {
	t.Helper()
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
			out = append(out, fmt.Sprint(e.Step, e.N, e.Prompt))
		case event.KindModel:
			out = append(out, fmt.Sprintf("%+v", e.Data))
		}
	}
	for i, s := range out { // pointers print as such
		out[i] = strings.ReplaceAll(s, "&", "")
	}
	return out
}

// requests are what the test below asks for, one after the other.
func requests() []runtime.Request {
	params := runtime.Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, Seed: 1<<63 + 5}
	return []runtime.Request{
		{Text: "Call me Ishmael.", MaxTokens: 24, Params: params, SendText: true, Label: "novel", Group: "a"},
		{Text: "Fellow citizens — of the “Senate”", MaxTokens: 9, SendText: true, TopLogprobs: 3, Picks: true, IgnoreEOS: true},
		{IDs: []int32{5, 9, 80}, MaxTokens: 4, Probe: true, SendText: true},
		{Text: strings.Repeat("a prompt that does not fit ", 200), MaxTokens: 4},
	}
}

// TestSameAsInside runs the same requests on the same engine here and in a child. All that is told of them is the same.
func TestSameAsInside(t *testing.T) {
	out := start(t, job{Slots: 2})
	in := &running{log: &log{}}
	s := runtime.New(job{Slots: 2}.load, job{}.options())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, in.log) }()
	await(t, "ready", func() bool { return in.engine().State == event.EngineReady })

	for i, r := range requests() {
		var results [2]runtime.Result
		for k, runner := range []runtime.Runner{s, out} {
			h, err := runner.Submit(r)
			if err != nil {
				t.Fatal(err)
			}
			results[k] = h.Result()
		}
		if a, b := results[0].Err, results[1].Err; fmt.Sprint(a) != fmt.Sprint(b) || (b != nil) != errors.Is(b, runtime.ErrPromptTooLong) {
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
	told := ""
	for _, e := range out.Of(event.KindEngine) {
		if engine := e.Data.(*event.Engine); engine.State == event.EngineLoading && engine.Reason != "" {
			told += engine.Reason + ";"
		}
	}
	if told != "a quarter;half of it;" {
		t.Errorf("of the load %q was told", told)
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

// TestEveryEventArrives compares what the child has done with what has come of it, over some thousand events.
func TestEveryEventArrives(t *testing.T) {
	r := start(t, job{Slots: 4})
	var handles []*runtime.Handle
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
	for _, e := range r.Of(event.KindToken) {
		if e.Index != next[e.Req] {
			t.Fatalf("token %d of request %d came where %d should have", e.Index, e.Req, next[e.Req])
		}
		next[e.Req]++
	}
	if len(r.Of(event.KindLost)) > 0 || r.engine().Remote != (event.Remote{}) || r.engine().State != event.EngineStopped {
		t.Errorf("lost events %v, engine %+v", r.Of(event.KindLost), r.engine())
	}
}
