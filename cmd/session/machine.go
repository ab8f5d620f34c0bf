package session

import (
	"maps"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/discover"
)

// searchInterval is the interval between searches for the process of a server, which read all processes.
const searchInterval = event.Time(10 * time.Second)

// Machine passes samples of this machine to the sessions of servers, each with the usage of the server's own process if
// it runs here. The zero value is ready to use.
type Machine struct {
	mu         sync.Mutex // guards the fields below
	sessions   []hosted
	family     *host.Family
	owners     map[uint16]int // process IDs by port
	searchedAt event.Time
}

// hosted is the session of a server on this machine.
type hosted struct {
	port uint16     // at which it listens; 0: another machine, or a known process
	pid  func() int // nil: found by its port
	sink event.Sink
}

// Add adds the session of the server at an address. It never looks for the process of a server on another machine.
func (m *Machine) Add(address string, s event.Sink) {
	at, _ := remote.LocalAddress(address)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = append(m.sessions, hosted{port: at.Port(), sink: s})
}

// AddProcess adds the session of a process of this machine. While pid returns 0, it gets no samples.
func (m *Machine) AddProcess(pid func() int, s event.Sink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = append(m.sessions, hosted{pid: pid, sink: s})
}

// Emit implements event.Sink.
func (m *Machine) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.findOwners(e.At)
	sampled := make(map[int]*event.Host)
	for _, s := range m.sessions {
		pid := m.owners[s.port] // 0: unknown
		if s.pid != nil {
			if pid = s.pid(); pid == 0 {
				continue
			}
		}
		here := sampled[pid]
		if here == nil {
			here = new(*h)
			m.sample(here, pid, e.At)
			sampled[pid] = here
		}
		e.Data = here
		s.sink.Emit(e)
	}
}

// findOwners searches for the processes that listen, if the process of a server is unknown.
func (m *Machine) findOwners(now event.Time) {
	if m.searchedAt != 0 && now-m.searchedAt < searchInterval { // 0: not searched yet
		return
	}
	for _, s := range m.sessions {
		if _, found := m.owners[s.port]; s.port != 0 && !found {
			m.searchedAt, m.owners = now, discover.Owners()
			break
		}
	}
	if m.family == nil {
		m.family = host.NewFamily()
	}
}

// sample sets the usage and the limits of a process, nothing if it is unknown.
func (m *Machine) sample(h *event.Host, pid int, now event.Time) {
	h.Engine = event.Process{}
	if pid != 0 {
		h.Engine = m.family.Sample(pid, now)
	}
	m.family.Limits(h, pid)
	m.family.GPUs(h, pid)
	if !h.Engine.CPU.OK() && h.Engine.CPU.Origin == event.NotReported { // the process has ended
		maps.DeleteFunc(m.owners, func(_ uint16, owner int) bool { return owner == pid })
	}
}

// Processes returns a function for the current processes of the server at an address, the one that listens first; none if
// they are unknown.
func (m *Machine) Processes(address string) func() []int {
	at, _ := remote.LocalAddress(address)
	return m.processes(func() int { return m.owners[at.Port()] })
}

// ProcessesOf is Processes for a process that was added with AddProcess.
func (m *Machine) ProcessesOf(pid func() int) func() []int { return m.processes(pid) }

func (m *Machine) processes(root func() int) func() []int {
	return func() []int {
		m.mu.Lock()
		defer m.mu.Unlock()
		pid := root()
		if pid == 0 || m.family == nil {
			return nil
		}
		return m.family.Processes(pid)
	}
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

// WithSelf passes the events of a remote engine to another sink. Samples of its machine get the usage of this process in
// place of that of the remote llmtop. It must not be used concurrently.
type WithSelf struct {
	now  func() event.Time
	self *host.SelfSampler
	sink event.Sink
}

// NewWithSelf returns a sink before sink; the caller must call Close.
func NewWithSelf(now func() event.Time, sink event.Sink) *WithSelf {
	return &WithSelf{now, host.NewSelfSampler(), sink}
}

// Close closes the files kept open between samples.
func (w *WithSelf) Close() { w.self.Close() }

// Emit implements event.Sink.
func (w *WithSelf) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		here := *h
		here.Self = w.self.Sample(w.now())
		e.Data = &here
	}
	w.sink.Emit(e)
}

// SelfOnly returns a sink that drops everything but llmtop's own process from samples of this machine, for servers on
// another machine.
func SelfOnly(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
			e.Data = &event.Host{Interval: h.Interval, Self: h.Self, NoGPU: event.NotReported.String()}
		}
		sink.Emit(e)
	})
}
