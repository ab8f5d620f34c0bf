package discover

import (
	"net/netip"
	"slices"
)

// Owners returns the pids of this machine's engines by the ports that local clients connect to. If a process and its
// children listen at one port, the parent is the owner. Only known engine programs count: a program that forwards
// requests, as for a container, is not an owner. Of a process whose ports cannot be read, it is the one on its command
// line, or its usual one, if its user listens there. Ports of several unrelated engines are omitted.
func Owners() map[uint16]int {
	seen := look("")
	return seen.owners()
}

func (s *sight) owners() map[uint16]int {
	owner := make(map[uint16]*process)
	var several []uint16
	for i := range s.processes {
		p := &s.processes[i]
		for _, at := range slices.Concat(p.ports, p.likely) {
			port, other := at.Port(), owner[at.Port()]
			switch {
			case !at.Addr().IsLoopback() && !at.Addr().IsUnspecified(), other == p:
			case other == nil, slices.Contains(other.ancestors, p.pid):
				owner[port] = p
			case !slices.Contains(p.ancestors, other.pid):
				several = append(several, port)
			}
		}
	}
	owners := make(map[uint16]int)
	for port, p := range owner {
		if !slices.Contains(several, port) {
			owners[port] = p.pid
		}
	}
	return owners
}

// Runners returns the addresses of the llama-servers that the Ollama at a port of this machine started, with the names of
// their models' files.
func Runners(port uint16) map[string]string {
	seen := look("")
	return seen.runnersOf(port)
}

func (s *sight) runnersOf(port uint16) map[string]string {
	out := map[string]string{}
	for _, e := range s.engines() {
		// Ports of another user's Ollama are hidden: candidates has its usual one.
		if !slices.ContainsFunc(s.candidates(&e), func(at netip.AddrPort) bool { return at.Port() == port }) {
			continue
		}
		for _, p := range e.runners {
			if r := p.runner(); r.Address != "" {
				out[r.Address] = r.Model
			}
		}
	}
	return out
}
