package host

import (
	"runtime/metrics"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// gcCounter reads the cost of Go's garbage collector in llmtop between two samples.
type gcCounter struct {
	samples [2]metrics.Sample
	pause   float64 // pause time since the program started, in s
	cycles  uint64
	sampled bool
}

// read sets the number of collections since the last call and how long they stopped the program, in ns. The Go runtime
// reports pauses as a histogram: each counts as the middle of its bucket, an error of at most 1/8.
func (g *gcCounter) read(p *event.Process) {
	g.samples[0].Name, g.samples[1].Name = "/sched/pauses/total/gc:seconds", "/gc/cycles/total:gc-cycles"
	metrics.Read(g.samples[:])
	if g.samples[0].Value.Kind() != metrics.KindFloat64Histogram || g.samples[1].Value.Kind() != metrics.KindUint64 {
		p.GCPause, p.GCCount = event.Absent(event.NotReported), event.Absent(event.NotReported)
		return
	}
	pause, cycles := total(g.samples[0].Value.Float64Histogram()), g.samples[1].Value.Uint64()
	p.GCPause, p.GCCount = event.Absent(event.NotYet), event.Absent(event.NotYet)
	if g.sampled {
		p.GCPause = event.DerivedValue((pause - g.pause) * float64(time.Second))
		p.GCCount = event.MeasuredValue(float64(cycles - g.cycles))
	}
	g.pause, g.cycles, g.sampled = pause, cycles, true
}

// total sums a histogram. Each value counts as the middle of its bucket; values in the unbounded end buckets count as
// the finite bound.
func total(h *metrics.Float64Histogram) (sum float64) {
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		lo, hi := h.Buckets[i], h.Buckets[i+1]
		switch {
		case lo < 0:
			lo = hi
		case hi > 1e9:
			hi = lo
		}
		sum += float64(n) * (lo + hi) / 2
	}
	return sum
}

// outside computes the CPU time, in cores, that llmtop spends outside the engine's threads.
func (s *Sampler) outside(p *event.Process, since time.Duration) {
	p.OutsideEngine = event.Absent(event.NotReported)
	if s.opt.EngineThreads == nil {
		return
	}
	ids := s.opt.EngineThreads()
	if len(ids) == 0 {
		return
	}
	used := s.os.threads(ids)
	if !used.OK() {
		return
	}
	before := s.engine
	s.engine = used
	if since <= 0 || !before.OK() || !p.CPU.OK() || used.V < before.V {
		p.OutsideEngine = event.Absent(event.NotYet)
		return
	}
	p.OutsideEngine = event.DerivedValue(max(p.CPU.V-(used.V-before.V)/since.Seconds(), 0))
}
