// Package host samples the machine and processes on it: CPU, memory, disk, accelerators. A value that the system does
// not report is absent with a reason, never 0.
package host

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// DefaultInterval is the default sampling interval: short enough to see changes, long enough to cost little.
const DefaultInterval = time.Second

// Options configure a Sampler.
type Options struct {
	Clock    engine.Clock  // clock of the event timestamps
	Interval time.Duration // 0: DefaultInterval
	// EngineThreads returns the ids of llmtop's own threads that compute for the engine. It may be nil or return nil if
	// they are not available.
	EngineThreads func() []int
	NoGPU         bool // do not read accelerators
	NoRead        bool // do not measure the read bandwidth
}

// Sampler is an engine.Source of samples of this machine, and of llmtop as the engine's process.
type Sampler struct {
	opt Options

	mu     sync.Mutex // guards the fields below; held during a sample
	os     system
	last   event.Time
	rated  bool // a sample had a previous one, and so rates
	self   gcCounter
	gpus   *gpuWatch
	shares gpuShares
	reads  []float64     // see event.Host.ReadBandwidth
	cpu    event.Reading // utilisation of the machine in the last sample

	engine event.Reading // CPU time of the engine's threads at the last sample, in s
	energy *Energy       // of the processors; nil until Run
}

// system reads values of one operating system. Rates are over the time since the previous call; the first call has
// none.
type system interface {
	machine(h *event.Host, since time.Duration)
	// limits sets the memory and the limits of the control groups of a process that is sampled by process; of another
	// process the memory of the machine.
	limits(h *event.Host, pid int, since time.Duration)
	process(pid int, since time.Duration) event.Process
	// threads returns the CPU time used by threads of this process, in s; absent if not available.
	threads(ids []int) event.Reading
	// parents maps each process to its parent; nil if not available.
	parents() map[int]int
	// forget drops the state of processes that have ended.
	forget(gone func(pid int) bool)
	close()
}

// New prepares a Sampler.
func New(opt Options) *Sampler {
	if opt.Interval == 0 {
		opt.Interval = DefaultInterval
	}
	return &Sampler{opt: opt, os: newSystem()}
}

// Run emits a sample at once, then one per interval until ctx ends, and a last one.
func (s *Sampler) Run(ctx context.Context, sink event.Sink) error {
	defer s.os.close()
	if !s.opt.NoGPU {
		gpus := watchGPUs(ctx)
		defer gpus.wait()
		s.watch(gpus)
	}
	s.meter(meterEnergy(powercap))
	bandwidth, wanted := make(chan []float64, 1), !s.opt.NoRead
	tick := time.NewTicker(s.opt.Interval)
	defer tick.Stop()
	for {
		s.Sample(sink)
		select {
		case <-ctx.Done():
			s.sampleEnd(sink)
			return nil
		case <-tick.C:
		}
		select {
		case v := <-bandwidth:
			s.measuredReads(v)
		default:
			if wanted && s.idle() {
				wanted = false
				go measureRead(ctx, bandwidth)
			}
		}
	}
}

// idleCPU is the utilisation of the machine up to which its read bandwidth is measured: an engine at work would make the
// measurement too low, and would be slowed down by it.
const idleCPU = 0.2

// idle reports whether the last sample shows an idle machine.
func (s *Sampler) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cpu.OK() && s.cpu.V <= idleCPU
}

func (s *Sampler) watch(gpus *gpuWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gpus = gpus
}

func (s *Sampler) meter(e *Energy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.energy = e
}

func (s *Sampler) measuredReads(list []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = list
}

// Sample emits an additional sample now. After Run has returned, it may lack values that need files kept open by Run.
func (s *Sampler) Sample(sink event.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.sample()
	sink.Emit(event.Event{Kind: event.KindHost, At: s.last, Layer: -1, Data: h})
}

// sampleEnd emits a last sample, unless the previous one is recent: rates over a short time are coarse.
func (s *Sampler) sampleEnd(sink event.Sink) {
	s.mu.Lock()
	recent := s.rated && s.opt.Clock.Now()-s.last < event.Time(s.opt.Interval/10)
	s.mu.Unlock()
	if !recent {
		s.Sample(sink)
	}
}

// sample reads all values once.
func (s *Sampler) sample() *event.Host {
	now := s.opt.Clock.Now()
	var since time.Duration
	if s.last != 0 {
		since, s.rated = time.Duration(now-s.last), true
	}
	s.last = now
	h := &event.Host{Interval: int64(since), ReadBandwidth: s.reads}
	s.os.machine(h, since)
	s.cpu = h.CPU
	h.Power = s.energy.power(since)
	h.Self = s.os.process(os.Getpid(), since)
	s.self.read(&h.Self)
	h.Engine = h.Self
	s.os.limits(h, h.Self.PID, since)
	h.Self.Cores = h.Engine.Cores
	s.outside(&h.Self, since)
	if s.gpus != nil {
		s.gpus.read(h)
		s.shares.set(h, []int{h.Engine.PID})
	} else {
		h.NoGPU = "not looked for"
	}
	return h
}
