package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// busy is a session with everything in it: a model of 8 x 16 experts, four running requests with full rings, and a ring of ended ones.
func busy(running int) *play {
	p := newPlay()
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
			p.emit(sec, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.Of(.5)}})
			p.store.Snapshot()
		}
	}
	p.store.Snapshot()
	return p
}

func benchmarkSnapshot(b *testing.B, running int) {
	p := busy(running)
	b.ReportAllocs()
	for b.Loop() {
		p.emit(us, event.Event{Kind: event.KindLog}) // or it would be the same snapshot
		p.store.Snapshot()
	}
}

// BenchmarkSnapshot is a snapshot of a session with full rings and one request running.
func BenchmarkSnapshot(b *testing.B) { benchmarkSnapshot(b, 1) }

// BenchmarkSnapshotOfFour is the same with four running.
func BenchmarkSnapshotOfFour(b *testing.B) { benchmarkSnapshot(b, 4) }

// BenchmarkSnapshotUnchanged is a snapshot while nothing happens.
func BenchmarkSnapshotUnchanged(b *testing.B) {
	p := busy(1)
	b.ReportAllocs()
	for b.Loop() {
		p.store.Snapshot()
	}
}

// BenchmarkEmit is what an event costs its producer.
func BenchmarkEmit(b *testing.B) {
	p := newPlay()
	e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Text: " word"}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		p.store.Emit(e)
		if n++; n == event.DefaultQueue/2 {
			b.StopTimer()
			p.store.drain()
			b.StartTimer()
			n = 0
		}
	}
}

// BenchmarkApply is what a token costs the store.
func BenchmarkApply(b *testing.B) {
	p := newPlay()
	p.state(0, 1, event.StateQueued, nil)
	p.token(ms, 1, 1)
	p.store.drain()
	e := event.Event{Kind: event.KindToken, Req: 1, N: 1, Text: " word", At: p.now}
	b.ReportAllocs()
	for b.Loop() {
		e.At += event.Time(600 * us)
		p.store.state.apply(&e)
	}
}
