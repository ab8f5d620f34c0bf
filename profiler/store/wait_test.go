package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestWaits plays two requests behind one slot: the first is held up by the prompt and by the decoding of another, and
// the second by both requests before it.
func TestWaits(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapQueue | event.CapTokens, Slots: 1, State: event.EngineReady}})
	run := func(id event.RequestID) {
		p.state(0, id, event.StateDispatched, nil)
		p.stage(id, event.StagePrompt, 400*ms, 8)
		p.token(0, id, 1)
		p.token(300*ms, id, 1)
		p.state(0, id, event.StateFinished, nil)
	}
	for id := range event.RequestID(3) {
		p.state(0, id+1, event.StateQueued, nil)
	}
	check := func(when string, id event.RequestID, want ...Wait) {
		t.Helper()
		s := p.store.Snapshot()
		got := s.WaitsOf(p.request(t, id))
		if len(got) != len(want) {
			t.Fatalf("%s: #%d waited %+v, want %+v", when, id, got, want)
		}
		for i, w := range want {
			if g := got[i]; g.Cause != w.Cause || g.By != w.By || g.NS != w.NS {
				t.Errorf("%s: #%d waited %+v, want %+v", when, id, g, w)
			}
		}
	}
	run(1)
	check("ended", 1)
	p.state(0, 2, event.StateDispatched, nil)
	p.now += event.Time(100 * ms)
	check("while #2 holds the slot", 3, Wait{Cause: verdict.PromptOfOther, By: 1, NS: 400 * ms}, Wait{Cause: verdict.Queue, By: 1, NS: 300 * ms}, Wait{Cause: verdict.Queue, By: 2, NS: 100 * ms})
	p.stage(2, event.StagePrompt, 50*ms, 8)
	p.token(0, 2, 1)
	check("with a first token", 2, Wait{Cause: verdict.PromptOfOther, By: 1, NS: 400 * ms}, Wait{Cause: verdict.Queue, By: 1, NS: 300 * ms})
}

// TestWaitsOfSlots checks that nothing is blamed while a slot is free, and none of several that may leave next.
func TestWaitsOfSlots(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapQueue | event.CapTokens, Slots: 2, State: event.EngineReady}})
	for id := range event.RequestID(2) {
		p.state(0, id+1, event.StateQueued, nil)
	}
	p.state(0, 1, event.StateDispatched, nil)
	p.now += event.Time(10 * ms)
	if got := p.store.Snapshot().WaitsOf(p.request(t, 2)); len(got) != 1 || got[0].Cause != verdict.Unknown {
		t.Errorf("with a free slot: %+v", got)
	}
	p.state(0, 2, event.StateDispatched, nil)
	p.state(0, 3, event.StateQueued, nil)
	p.now += event.Time(10 * ms)
	if got := p.store.Snapshot().WaitsOf(p.request(t, 3)); len(got) != 1 || got[0].Cause != verdict.Queue || got[0].By != 0 {
		t.Errorf("behind two: %+v", got)
	}
	p.state(0, 2, event.StateFinished, nil)
	p.state(0, 3, event.StateDispatched, nil)
	p.token(0, 3, 1)
	if got := p.request(t, 3).Waits; len(got) != 1 || got[0].By != 2 || got[0].NS != 10*ms {
		t.Errorf("after #2 left: %+v", got)
	}
}

// TestWaitsWithoutQueue checks an engine that reports prompt times only at the end of requests, and no queue, as a
// proxy sees servers: a slot is blamed if the request began when one that held it ended, and nothing otherwise.
func TestWaitsWithoutQueue(t *testing.T) {
	for name, c := range map[string]struct {
		begins int64 // ns after #1 has ended
		cause  verdict.Cause
		by     event.RequestID
	}{
		"begins when another ends": {2 * ms, verdict.Queue, 1},
		"begins by itself":         {200 * ms, verdict.Unknown, 0},
	} {
		p := newSession()
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens | event.CapStages, State: event.EngineReady}})
		for id := range event.RequestID(2) {
			p.state(0, id+1, event.StateQueued, nil)
		}
		p.token(10*ms, 1, 1)
		p.token(300*ms, 1, 1)
		prompt := event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Layer: -1, N: 8}
		prompt.Req, prompt.At, prompt.Dur = 1, p.now-event.Time(300*ms), 10*ms
		p.store.Emit(prompt)
		p.state(0, 1, event.StateFinished, nil)
		p.token(c.begins+40*ms, 2, 1)
		first := p.now
		p.token(100*ms, 2, 1)
		if got := p.store.Snapshot().WaitsOf(p.request(t, 2)); len(got) != 0 {
			t.Errorf("%s: before the prompt's time is reported: %+v", name, got)
		}
		prompt.Req, prompt.At, prompt.Dur = 2, first, 40*ms
		p.store.Emit(prompt)
		p.state(0, 2, event.StateFinished, nil)
		got := p.request(t, 2).Waits
		if len(got) == 0 || got[0].Cause != c.cause || got[0].By != c.by {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestManyWaits checks that all of a wait behind many requests is explained, the longest part first.
func TestManyWaits(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapQueue | event.CapTokens, Slots: 1, State: event.EngineReady}})
	const last = 20
	for id := range event.RequestID(last) {
		p.state(0, id+1, event.StateQueued, nil)
	}
	for id := event.RequestID(1); id < last; id++ {
		p.state(0, id, event.StateDispatched, nil)
		p.token(int64(id)*10*ms, id, 1)
		p.state(0, id, event.StateFinished, nil)
	}
	p.state(0, last, event.StateDispatched, nil)
	p.token(0, last, 1)
	waits, sum := p.request(t, last).Waits, int64(0)
	for i, w := range waits {
		sum += w.NS
		if w.Cause != verdict.Queue || i > 0 && w.NS > waits[i-1].NS || w.NS > int64(w.To-w.From) {
			t.Errorf("part %d: %+v", i, w)
		}
	}
	if len(waits) != maxWaits+1 || sum != 1900*ms {
		t.Errorf("%d parts, %d ms: %+v", len(waits), sum/ms, waits)
	}
}
