package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestLastActive checks that an idle engine keeps the windows of the last second in which it ran, and that they are
// never shown beside something that runs.
func TestLastActive(t *testing.T) {
	p := newSession()
	p.engine(event.CapSteps | event.CapTokens)
	if p.now += event.Time(60 * sec); p.store.Snapshot().LastActive != nil {
		t.Error("last values of an engine that never ran")
	}
	run := func(id event.RequestID) {
		p.state(0, id, event.StateQueued, nil)
		p.state(0, id, event.StateDispatched, nil)
		for range 20 {
			p.step(20*ms, 1, 0)
			p.token(0, id, 1)
		}
	}
	run(1)
	if p.now += event.Time(20 * sec); p.store.Snapshot().LastActive != nil {
		t.Error("last values while a request is running")
	}
	p.state(0, 1, event.StateFinished, nil)
	run(2)
	p.state(0, 2, event.StateFinished, nil)
	ended := p.now
	if p.now += event.Time(int64(IdleAfter) - sec); p.store.Snapshot().LastActive != nil {
		t.Error("last values before the engine counts as idle")
	}
	p.now = ended + event.Time(70*sec)
	s := p.store.Snapshot()
	want(t, "decode now", s.Throughput.Decode, "not yet")
	if s.Latency.Of[ITL][metric.Minute].Count != 0 {
		t.Error("tokens within the last minute")
	}
	last := s.LastActive
	if last == nil {
		t.Fatal("no last values of an idle engine")
	}
	if age := int64(s.Now - last.Now); age < 69*sec || age > 70*sec {
		t.Errorf("last values are %d ns old, want 69 to 70 s", age)
	}
	want(t, "last decode", last.Throughput.Decode, 50.)
	if last.Latency.Of[ITL][metric.Minute].Count != 38 || last.Throughput.Running != 0 {
		t.Errorf("last values: %d gaps, %d running; want 38, 0", last.Latency.Of[ITL][metric.Minute].Count, last.Throughput.Running)
	}
	run(3)
	p.state(0, 3, event.StateFinished, nil)
	if p.store.Snapshot().LastActive != nil {
		t.Error("last values after a request within the second that has not ended")
	}
	run(4)
	if p.store.Snapshot().LastActive != nil {
		t.Error("last values after the engine runs again")
	}
}

// TestLastValuesWithoutConnection checks that values stay as they were when the connection broke, also while a request
// was running.
func TestLastValuesWithoutConnection(t *testing.T) {
	p := newSession()
	info := &event.EngineInfo{Name: "native", Caps: event.CapSteps | event.CapTokens, State: event.EngineReady, Remote: event.Remote{Address: "unix:/e", Link: event.LinkConnected, Since: p.now}}
	p.emit(0, event.Event{Kind: event.KindEngine, Data: info})
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	for range 100 {
		p.step(20*ms, 1, 0)
		p.token(0, 1, 1)
	}
	if p.store.Snapshot().LastActive != nil {
		t.Error("last values while connected")
	}
	lost := *info
	lost.Remote.Update(event.LinkDisconnected, "closed", p.now)
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &lost})
	at := p.now
	for _, later := range []int64{0, sec, 30 * sec, 120 * sec} {
		p.now = at + event.Time(later)
		last := p.store.Snapshot().LastActive
		if last == nil || last.Now > at || last.Throughput.Decode.V != 50 {
			t.Fatalf("%v s after the end: %+v", later/sec, last)
		}
	}
	back := lost
	back.Remote.Update(event.LinkConnected, "", p.now)
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &back})
	p.step(20*ms, 1, 0)
	p.token(0, 1, 1)
	if p.store.Snapshot().LastActive != nil {
		t.Error("last values after the engine is connected again")
	}
}
