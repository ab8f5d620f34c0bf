package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// emitMinutes emits a session of the given length: eight concurrent requests of 400 tokens each, 1,000 tokens/s in all,
// with stages, forward passes, picks of 8 x 16 experts twice a second and a machine sample per second.
func emitMinutes(p *session, seconds int) {
	rng := rand.New(rand.NewPCG(1, 1))
	counts := make([]uint64, 128)
	const open = 8
	next, made := event.RequestID(open), [open]int{}
	for id := range next {
		p.state(0, id+1, event.StateQueued, &event.Request{MaxTokens: 400})
	}
	for i := range seconds * 125 {
		p.step(8*ms-int64(rng.IntN(int(ms/10))), open, 0)
		for k := range open {
			id := next - open + event.RequestID(k) + 1
			p.emit(rng.Int64N(3*us), event.Event{Kind: event.KindToken, Req: id, ID: int32(rng.IntN(4096)), N: 1, Index: int32(made[k]), Step: uint64(i), Text: " word", Layer: -1})
			made[k]++
		}
		if made[0] == 400 {
			for k := range event.RequestID(open) {
				p.state(0, next-open+k+1, event.StateFinished, &event.Outcome{Reason: "length", Prompt: 40, Generated: 400})
				p.state(0, next+k+1, event.StateQueued, &event.Request{MaxTokens: 400})
			}
			next, made = next+open, [open]int{}
		}
		if i%62 == 0 {
			for c := range counts {
				counts[c] += uint64(rng.IntN(20))
			}
			p.emitPicks(8, 16, make([]uint64, 128), counts, [2]uint64{metric.Decode: uint64(i)})
			p.store.Snapshot()
		}
		if i%125 == 0 {
			p.emit(0, event.Event{Kind: event.KindHost, Layer: -1, Data: &event.Host{CPU: event.MeasuredValue(rng.Float64()), Cores: []float64{rng.Float64(), rng.Float64()}}})
		}
	}
	p.store.Snapshot()
}

// BenchmarkHistory measures the cost of an event with and without a history, and the bytes it takes.
func BenchmarkHistory(b *testing.B) {
	for _, c := range []struct {
		name  string
		limit int
	}{{"none", 0}, {"kept", 1 << 30}} {
		b.Run(c.name, func(b *testing.B) {
			const seconds = 60
			for b.Loop() {
				p := newSessionWithHistory(c.limit, maxSegmentEvents)
				emitMinutes(p, seconds)
				if h := p.store.history; h != nil {
					size, bases := 0, 0
					for _, s := range h.segments {
						size, bases = size+s.size, bases+s.base.size
					}
					b.ReportMetric(float64(size)/seconds, "B/s")
					b.ReportMetric(float64(size-bases)/seconds/1125, "B/event")
					b.ReportMetric(float64(bases)/float64(len(h.segments)), "B/state")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/seconds/1125, "ns/event")
		})
	}
}

// BenchmarkReadHistory reads random times of the history, and times one second apart.
func BenchmarkReadHistory(b *testing.B) {
	p := newSessionWithHistory(DefaultHistory, maxSegmentEvents)
	emitMinutes(p, 240)
	reader := p.store.HistoryReader()
	from, to := reader.Range()
	b.Logf("the history reaches back %v in %d segments", time.Duration(to-from), len(p.store.history.segments))
	b.Run("anywhere", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			reader.At(from + event.Time(rng.Int64N(int64(to-from))))
		}
	})
	b.Run("onward", func(b *testing.B) {
		at := from
		for b.Loop() {
			if at += event.Time(sec); at > to {
				at = from
			}
			reader.At(at)
		}
	})
}
