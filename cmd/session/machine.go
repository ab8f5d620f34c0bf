package session

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/discover"
)

// searchInterval is the interval between searches for the process of a server, which read all processes.
const searchInterval = event.Time(10 * time.Second)

// Machine passes samples of this machine to the sessions of engines, each with its engine's own process if that runs
// here, whatever llmtop watches it by. The zero value is ready to use.
type Machine struct {
	mu         sync.Mutex // guards the fields below, and those of hosted
	hosted     []*Hosted
	family     *host.Family
	self       event.Process // llmtop's own, in the last sample
	sampledAt  event.Time
	ports      []uint16 // of servers
	owners     map[uint16]host.ID
	searchedAt event.Time
}

// Process returns the process of an engine, 0 while it is unknown, and whether the engine runs on this machine. The
// machine is locked meanwhile. nil: the engine runs on another machine.
type Process func() (pid int, here bool)

// At returns the process of the server at an address, the one that listens first.
func (m *Machine) At(address string) Process {
	at, here := remote.LocalAddress(address)
	if !here {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ports = append(m.ports, at.Port())
	return func() (int, bool) { return m.owners[at.Port()].Alive(), true }
}

// Known returns the process that pid returns. While that is 0, nothing shows that the engine runs on this machine.
func Known(pid func() int) Process {
	return func() (int, bool) {
		p := pid()
		return p, p != 0
	}
}

// Hosted is an engine with the machine that it runs on.
type Hosted struct {
	machine *Machine
	clock   engine.Clock
	process Process
	sink    event.Sink

	here   bool        // a sample found it on this machine
	base   *event.Host // last sample of this machine with the engine's process; nil: none
	own    event.Host  // the engine's own last sample
	ownAt  event.Time  // 0: it has sent none
	last   event.Time  // of the last sample passed on
	caps   event.Caps
	busy   event.Time // when its first request began, or its load; 0: none yet
	usages bool       // it samples its threads itself
}

// Add adds an engine whose samples go to sink: only with llmtop's own process if the engine runs on another machine, and
// none while it is not known to run here.
func (m *Machine) Add(clock engine.Clock, p Process, sink event.Sink) *Hosted {
	h := &Hosted{machine: m, clock: clock, process: p, sink: sink}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.family == nil {
		m.family = host.NewFamily()
	}
	m.hosted = append(m.hosted, h)
	return h
}

// Watch is Add for the engine of a session, which also gets the usage of the engine's threads, and what the file of its
// model says.
func (m *Machine) Watch(s *Session, clock engine.Clock, p Process, sink event.Sink) *Hosted {
	h := m.Add(clock, p, sink)
	if p != nil {
		s.AddUsage(host.UsageOptions{Clock: clock, Processes: h.Processes})
		r := &modelReader{processes: h.all, due: make(chan struct{}, 1)}
		s.AlsoTo(r)
		s.Add("read model", r.Run)
	}
	return h
}

// Here reports whether the engine was found to run on this machine. nil: not for certain.
func (h *Hosted) Here() bool {
	if h == nil {
		return false
	}
	h.machine.mu.Lock()
	defer h.machine.mu.Unlock()
	return h.here
}

// all returns the current processes of the engine, the main one first; none if they are unknown.
func (h *Hosted) all() []int {
	m := h.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	pid, _ := h.process()
	if pid == 0 || m.family == nil {
		return nil
	}
	return m.family.Processes(pid)
}

// Emit implements event.Sink for samples of this machine.
func (m *Machine) Emit(e event.Event) {
	sample, ok := e.Data.(*event.Host)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.findOwners(e.At)
	before := m.sampledAt
	m.self, m.sampledAt = sample.Self, e.At
	sampled := make(map[int]*event.Host)
	for _, h := range m.hosted {
		if h.process == nil {
			h.emit(event.Host{Interval: sample.Interval, Self: sample.Self, NoGPU: event.NotReported.String()}, e)
			continue
		}
		pid, here := h.process()
		if h.base = nil; !here {
			continue
		}
		h.here = true
		if sampled[pid] == nil {
			sampled[pid] = m.sample(sample, pid, e.At)
		}
		h.base = sampled[pid]
		if h.ownAt != 0 && h.ownAt > before { // it had all of this but the last moment
			continue
		}
		of := *h.base
		if h.ownAt != 0 && e.At-h.ownAt <= event.Time(max(2*h.own.Interval, int64(ownLasts))) {
			of.Fill(&h.own)
		}
		h.emit(of, e)
	}
}

// ownLasts is for how long readings that only the engine has stand for its machine, at least.
const ownLasts = 5 * time.Second

// findOwners searches for the processes that listen, if the process of a server is unknown.
func (m *Machine) findOwners(now event.Time) {
	if m.searchedAt != 0 && now-m.searchedAt < searchInterval { // 0: not searched yet
		return
	}
	for _, port := range m.ports {
		if m.owners[port].Alive() != 0 {
			continue
		}
		m.searchedAt, m.owners = now, make(map[uint16]host.ID)
		for port, pid := range discover.Owners() {
			m.owners[port] = host.Identify(pid)
		}
		return
	}
}

// sample returns a sample with the usage and the limits of a process, of none if it is 0.
func (m *Machine) sample(of *event.Host, pid int, now event.Time) *event.Host {
	h := *of
	h.Engine = event.Process{}
	if pid != 0 {
		h.Engine = m.family.Sample(pid, now)
	}
	m.family.Limits(&h, pid)
	m.family.GPUs(&h, pid)
	return &h
}

// emit passes on a sample. Its interval begins after the sample before it, so that no time counts twice.
func (h *Hosted) emit(of event.Host, e event.Event) {
	if h.last != 0 {
		of.Interval = min(cmp.Or(of.Interval, math.MaxInt64), int64(max(e.At-h.last, 0)))
	}
	h.last, e.Data = e.At, &of
	h.sink.Emit(e)
}

// Engine returns a sink for the events of the engine on their way to sink. Its own samples are passed on, with what else
// is known of its process, and with llmtop's own process in place of the one that sampled it.
func (h *Hosted) Engine(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if !h.takes(e) {
			sink.Emit(e)
		}
	})
}

// takes notes an event of the engine, and passes it on if it is a sample of its machine.
func (h *Hosted) takes(e event.Event) bool {
	m := h.machine
	switch e.Kind {
	case event.KindHost, event.KindEngine, event.KindUsage, event.KindRequest:
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	switch p := e.Data.(type) {
	case *event.EngineInfo:
		h.caps = p.Caps
		switch {
		case p.Remote.Link.Down(): // another run of the engine may follow
			h.ownAt, h.busy, h.usages = 0, 0, false
		case p.State == event.EngineLoading && h.busy == 0:
			h.busy = h.clock.Now()
		}
	case *event.Usage:
		h.usages = true
	case *event.Host:
		own := *p
		own.Self = m.self
		h.own, h.ownAt = own, e.At
		h.own.ModelBytes, h.own.ModelCached, h.own.ExpertsCached, h.own.Engine.PSS = event.Reading{}, event.Reading{}, nil, event.Reading{} // of one sample
		if h.base != nil {
			own.Fill(h.base)
		}
		h.emit(own, e)
		return true
	}
	if e.Kind == event.KindRequest && h.busy == 0 {
		h.busy = h.clock.Now()
	}
	return false
}

// usageWait is how long an engine that samples its machine may take to send the first usage of its threads.
const usageWait = event.Time(time.Second)

// Processes returns the current processes of the engine whose threads llmtop is to sample, the main one first: none if
// they are unknown, or if the engine samples its threads itself, or may do so.
func (h *Hosted) Processes() []int {
	m := h.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	may := h.caps.Has(event.CapHost) && (h.busy == 0 || h.clock.Now()-h.busy < usageWait)
	pid, _ := h.process()
	if pid == 0 || m.family == nil || h.usages || may {
		return nil
	}
	return m.family.Processes(pid)
}

// Close closes the files kept open between samples.
func (m *Machine) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.family != nil {
		m.family.Close()
		m.family = nil
	}
}
