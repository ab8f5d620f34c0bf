// Package host samples the machine and processes on it: processor, memory, disk, accelerators. What the system does not tell is
// absent with the reason, never 0.
package host

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// DefaultInterval is how often a sample is taken: often enough to see a change, and cheap enough not to be one.
const DefaultInterval = time.Second

// Options configure a Sampler.
type Options struct {
	Clock    runtime.Clock // that events are stamped with
	PID      int           // the engine's process; 0: llmtop itself
	Interval time.Duration // 0: DefaultInterval
	// EngineThreads are the ids of llmtop's own threads that compute for the engine; nil, or a nil result, if it is not known.
	EngineThreads func() []int
	NoGPU         bool // do not look for accelerators
	NoCopy        bool // do not measure the copy bandwidth, which takes cores and memory from the engine meanwhile
}

// Sampler is a runtime.Source of host samples.
type Sampler struct {
	opt    Options
	wished chan struct{} // wanted has changed

	mu   sync.Mutex // guards what follows; held during a sample
	os   system
	last event.Time
	self gcCounter
	gpus *gpuWatch
	copy event.Reading

	engine  event.Reading // processor time of the engine's threads at the last sample, s
	energy  *Energy       // of the processors; nil until Run
	wanted  wish
	finding finding // since the last sample
}

// system reads one operating system. Rates are over the time since the call before; the first call has none.
type system interface {
	machine(h *event.Host, since time.Duration)
	// process reads a process, closely: also what takes long if it has many threads.
	process(pid int, since time.Duration, closely bool) event.Process
	// threads is the processor time that threads of this process have used, in s; absent where it is not known.
	threads(ids []int) event.Reading
	// parents are all processes with the one that has started each; nil where that is not known.
	parents() map[int]int
	// forget drops what is kept of processes that are gone.
	forget(gone func(pid int) bool)
	close()
}

// New prepares a sampler.
func New(opt Options) *Sampler {
	if opt.PID == 0 {
		opt.PID = os.Getpid()
	}
	if opt.Interval == 0 {
		opt.Interval = DefaultInterval
	}
	return &Sampler{opt: opt, wished: make(chan struct{}, 1), os: newSystem(), copy: event.Absent(event.NotYet)}
}

// Run emits a sample at once and then at every interval until ctx ends.
func (s *Sampler) Run(ctx context.Context, sink event.Sink) error {
	defer s.os.close()
	if !s.opt.NoGPU {
		gpus := watchGPUs(ctx)
		defer gpus.wait()
		s.watch(gpus)
	}
	s.meter(meterEnergy(powercap))
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		s.look(ctx)
	}()
	defer func() { <-looking }()
	bandwidth := make(chan float64, 1)
	if !s.opt.NoCopy {
		go measureCopy(ctx, bandwidth)
	}
	tick := time.NewTicker(s.opt.Interval)
	defer tick.Stop()
	for {
		s.Sample(sink)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		select {
		case v := <-bandwidth:
			s.copied(v)
		default:
		}
	}
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

func (s *Sampler) copied(bytesPerSecond float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy = event.Of(bytesPerSecond)
}

// Sample emits a sample of this moment, besides those of Run; after Run has returned, it may lack what Run kept open.
func (s *Sampler) Sample(sink event.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.sample()
	sink.Emit(event.Event{Kind: event.KindHost, At: s.last, Layer: -1, Data: h})
}

// sample reads everything once.
func (s *Sampler) sample() *event.Host {
	now := s.opt.Clock.Now()
	var since time.Duration
	if s.last != 0 {
		since = time.Duration(now - s.last)
	}
	s.last = now
	h := &event.Host{Interval: int64(since), CopyBandwidth: s.copy}
	s.os.machine(h, since)
	h.Power = s.energy.power(since)
	h.Self = s.os.process(os.Getpid(), since, s.wanted.watch)
	s.self.read(&h.Self)
	h.Engine = h.Self
	if s.opt.PID != os.Getpid() {
		h.Engine = s.os.process(s.opt.PID, since, s.wanted.watch)
	}
	s.tell(h)
	s.outside(&h.Self, since)
	if s.gpus != nil {
		h.GPUs, h.NoGPU = s.gpus.read()
	} else {
		h.NoGPU = "not looked for"
	}
	return h
}
