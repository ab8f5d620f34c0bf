package host

import (
	"runtime/debug"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// gcCounter reads the cost of Go's garbage collector in llmtop between two samples.
type gcCounter struct {
	stats   debug.GCStats
	sampled bool
}

// read sets the number of collections since the last call and how long they stopped the program, in ns.
func (g *gcCounter) read(p *event.Process) {
	pause, cycles := g.stats.PauseTotal, g.stats.NumGC
	debug.ReadGCStats(&g.stats) // 0.5 µs; runtime/metrics takes 20 µs, and rounds pauses
	p.GCPause, p.GCCount = event.Absent(event.NotYet), event.Absent(event.NotYet)
	if g.sampled {
		p.GCPause = event.MeasuredValue(float64(g.stats.PauseTotal - pause))
		p.GCCount = event.MeasuredValue(float64(g.stats.NumGC - cycles))
	}
	g.sampled = true
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
