package cmd

import (
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/host"
)

// seek is how often it is looked for the process of a server that has not been found: that reads all processes.
const seek = event.Time(10 * time.Second)

// machine hands samples of this machine to the sessions of servers, each with what its own server's process uses if that runs here. The zero value
// is ready.
type machine struct {
	mu     sync.Mutex // guards what follows
	on     []hosted
	family *host.Family
	owners map[uint16]int // of ports
	sought event.Time
}

// hosted is the session of a server of this machine.
type hosted struct {
	port uint16 // 0: it runs elsewhere
	sink event.Sink
}

// add hands samples also to the session of the server at an address. Of one on another machine no process is looked for.
func (m *machine) add(address string, s event.Sink) {
	at, _ := api.LocalAddress(address)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = append(m.on, hosted{at.Port(), s})
}

// Emit implements event.Sink.
func (m *machine) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.find(e.At)
	used := make(map[int]event.Process)
	for _, s := range m.on {
		here := *h
		here.Engine = m.process(s.port, e.At, used)
		e.Data = &here
		s.sink.Emit(e)
	}
}

// find looks which processes listen, if there is a server of which it is not known.
func (m *machine) find(now event.Time) {
	if m.family != nil && now-m.sought < seek {
		return
	}
	for _, s := range m.on {
		if _, known := m.owners[s.port]; s.port != 0 && !known {
			m.sought, m.owners = now, discover.Owners()
			break
		}
	}
	if m.family == nil {
		m.family = host.NewFamily()
	}
}

// process is what the process that listens at a port uses, nothing if it is not known. used holds what has been asked for at this moment.
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
	if !p.CPU.OK() && p.CPU.Origin == event.NotReported { // it has ended
		delete(m.owners, port)
	}
	return p
}

// close lets go of what is kept open between samples.
func (m *machine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.family != nil {
		m.family.Close()
		m.family = nil
	}
}
