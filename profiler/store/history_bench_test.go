package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// minutes is a session of eight requests at a time, each of 400 tokens, with 1,000 tokens a second between them, for some seconds: stages, passes,
// picks of 8 x 16 experts twice a second, and a sample of the machine once.
func minutes(p *play, seconds int) {
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
			p.picked(8, 16, make([]uint64, 128), counts, [2]uint64{metric.Decode: uint64(i)})
			p.store.Snapshot()
		}
		if i%125 == 0 {
			p.emit(0, event.Event{Kind: event.KindHost, Layer: -1, Data: &event.Host{CPU: event.Of(rng.Float64()), Cores: []float64{rng.Float64(), rng.Float64()}}})
		}
	}
	p.store.Snapshot()
}

// BenchmarkHistory is what an event costs a store that remembers, beside one that does not, and how many bytes it takes.
func BenchmarkHistory(b *testing.B) {
	for _, c := range []struct {
		name  string
		limit int
	}{{"none", 0}, {"kept", 1 << 30}} {
		b.Run(c.name, func(b *testing.B) {
			const seconds = 60
			for b.Loop() {
				p := remembering(c.limit, segmentEvents)
				minutes(p, seconds)
				if h := p.store.history; h != nil {
					size, keys := 0, 0
					for _, s := range h.segments {
						size, keys = size+s.size, keys+s.key.size
					}
					b.ReportMetric(float64(size)/seconds, "B/s")
					b.ReportMetric(float64(size-keys)/seconds/1125, "B/event")
					b.ReportMetric(float64(keys)/float64(len(h.segments)), "B/state")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/seconds/1125, "ns/event")
		})
	}
}

// BenchmarkTravel is a look at a moment of the last minutes, somewhere else every time, and one a second later than the one before.
func BenchmarkTravel(b *testing.B) {
	p := remembering(DefaultHistory, segmentEvents)
	minutes(p, 240)
	trip := p.store.Travel()
	from, to := trip.Reach()
	b.Logf("the history reaches back %v in %d segments", time.Duration(to-from), len(p.store.history.segments))
	b.Run("anywhere", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			trip.At(from + event.Time(rng.Int64N(int64(to-from))))
		}
	})
	b.Run("onward", func(b *testing.B) {
		at := from
		for b.Loop() {
			if at += event.Time(sec); at > to {
				at = from
			}
			trip.At(at)
		}
	})
}
