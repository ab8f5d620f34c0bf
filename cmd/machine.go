package cmd

import (
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/discover"
)

// searchInterval is the interval between searches for the process of a server, which read all processes.
const searchInterval = event.Time(10 * time.Second)

// machine passes samples of this machine to the sessions of servers, each with the usage of the server's own process if
// it runs here. The zero value is ready to use.
type machine struct {
	mu         sync.Mutex // guards the fields below
	sessions   []hosted
	family     *host.Family
	owners     map[uint16]int // process IDs by port
	searchedAt event.Time
}

// hosted is the session of a server on this machine.
type hosted struct {
	port uint16 // 0: another machine
	sink event.Sink
}

// add adds the session of the server at an address. It never looks for the process of a server on another machine.
func (m *machine) add(address string, s event.Sink) {
	at, _ := remote.LocalAddress(address)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = append(m.sessions, hosted{at.Port(), s})
}

// Emit implements event.Sink.
func (m *machine) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.findOwners(e.At)
	used := make(map[int]event.Process)
	for _, s := range m.sessions {
		here := *h
		here.Engine = m.process(s.port, e.At, used)
		e.Data = &here
		s.sink.Emit(e)
	}
}

// findOwners searches for the processes that listen, if the process of a server is unknown.
func (m *machine) findOwners(now event.Time) {
	if m.family != nil && now-m.searchedAt < searchInterval {
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

// process returns the usage of the process that listens at a port, nothing if it is unknown. used caches the processes
// already sampled at this time.
func (m *machine) process(port uint16, now event.Time, used map[int]event.Process) event.Process {
	pid, ok := m.owners[port]
	if !ok {
		return event.Process{}
	}
	p, done := used[pid]
	if !done {
		p = m.family.Sample(pid, now)
		used[pid] = p
	}
	if !p.CPU.OK() && p.CPU.Origin == event.NotReported { // the process has ended
		delete(m.owners, port)
	}
	return p
}

// close closes the files kept open between samples.
func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.family != nil {
		m.family.Close()
		m.family = nil
	}
}
