package discover

import (
	"net/netip"
	"slices"
)

// Owners are the processes of this machine's engines by the ports at which clients of this machine reach them. Of several that listen at one port it is
// the one that has started the others. Only programs that are known to be engines count: what merely passes requests on, as for a container, is
// none. Ports at which engines listen that have nothing to do with each other are left out, and so is what may not be looked at.
func Owners() map[uint16]int {
	seen := look("")
	return seen.owners()
}

func (s *sight) owners() map[uint16]int {
	by := make(map[uint16]*process)
	var several []uint16
	for i := range s.processes {
		p := &s.processes[i]
		for _, at := range p.ports {
			port, other := at.Port(), by[at.Port()]
			switch {
			case !at.Addr().IsLoopback() && !at.Addr().IsUnspecified(), other == p:
			case other == nil, slices.Contains(other.ancestors, p.pid):
				by[port] = p
			case !slices.Contains(p.ancestors, other.pid):
				several = append(several, port)
			}
		}
	}
	owners := make(map[uint16]int)
	for port, p := range by {
		if !slices.Contains(several, port) {
			owners[port] = p.pid
		}
	}
	return owners
}

// Runners are where the llama-servers are asked that the Ollama at a port of this machine has started.
func Runners(port uint16) []string {
	seen := look("")
	return seen.runnersOf(port)
}

func (s *sight) runnersOf(port uint16) (addresses []string) {
	for _, e := range s.engines() {
		if !slices.ContainsFunc(e.ports, func(at netip.AddrPort) bool { return at.Port() == port }) {
			continue
		}
		for _, r := range e.runners {
			for _, at := range r.ports {
				if at.Addr().IsUnspecified() {
					at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
				}
				if at.Addr().IsLoopback() {
					addresses = append(addresses, "http://"+at.String())
				}
			}
		}
	}
	return addresses
}
