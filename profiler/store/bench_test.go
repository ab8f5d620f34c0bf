package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// busySession returns a session with full lists: a model of 8 x 16 experts, running requests, and a ring of ended ones.
func busySession(running int) *session {
	p := newSession()
	p.engine(event.CapSteps | event.CapQueue | event.CapStages)
	for id := range event.RequestID(MaxRequests - running + 50) {
		p.state(0, id+100, event.StateQueued, nil)
		p.token(ms, id+100, 1)
		p.token(ms, id+100, 1)
		p.state(0, id+100, event.StateFinished, nil)
	}
	for id := range event.RequestID(running) {
		p.state(0, id+1, event.StateQueued, nil)
		p.state(0, id+1, event.StateDispatched, nil)
	}
	p.store.Snapshot()
	for i := range MaxGaps + 10 {
		p.step(ms, int32(running), 0)
		for id := range event.RequestID(running) {
			p.token(int64(i%7)*10*us, id+1, 1)
		}
		if i%100 == 0 {
			p.emit(0, event.Event{Kind: event.KindExperts, Data: &event.Experts{
				Layers: 8, Experts: 16, Used: 2, Prompt: make([]uint64, 128), Decode: make([]uint64, 128), DecodeTokens: uint64(i),
			}})
			p.emit(sec, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(.5)}})
			p.store.Snapshot()
		}
	}
	p.store.Snapshot()
	return p
}

func benchmarkSnapshot(b *testing.B, running int) {
	p := busySession(running)
	b.ReportAllocs()
	for b.Loop() {
		p.emit(us, event.Event{Kind: event.KindLog}) // or Snapshot would return the previous one
		p.store.Snapshot()
	}
}

// BenchmarkSnapshot takes snapshots of a session with full lists and one running request.
func BenchmarkSnapshot(b *testing.B) { benchmarkSnapshot(b, 1) }

// BenchmarkSnapshotOfFour does the same with four running requests.
func BenchmarkSnapshotOfFour(b *testing.B) { benchmarkSnapshot(b, 4) }

// BenchmarkSnapshotUnchanged takes snapshots without new events.
func BenchmarkSnapshotUnchanged(b *testing.B) {
	p := busySession(1)
	b.ReportAllocs()
	for b.Loop() {
		p.store.Snapshot()
	}
}

// BenchmarkEmit measures the cost of an event for its producer.
func BenchmarkEmit(b *testing.B) {
	p := newSession()
	e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Text: " word"}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		p.store.Emit(e)
		if n++; n == event.DefaultQueue/2 {
			b.StopTimer()
			p.store.Drain()
			b.StartTimer()
			n = 0
		}
	}
}

// BenchmarkApply measures the cost of a token for the store.
func BenchmarkApply(b *testing.B) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.token(ms, 1, 1)
	p.store.Drain()
	e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Text: " word", At: p.now}
	b.ReportAllocs()
	for b.Loop() {
		e.At += event.Time(600 * us)
		p.store.state.apply(&e)
	}
}
