package discover

import (
	"net/netip"
	"slices"
)

// Owners are the processes of this machine's engines by the ports at which clients of this machine reach them. Where an engine has started others
// for the same purpose it is the first of them. Only programs that are known to be engines count: what merely passes requests on, as for a
// container, is none. A port at which several engines listen is left out, and so is what may not be looked at.
func Owners() map[uint16]int {
	seen := look("")
	return seen.owners()
}

func (s *sight) owners() map[uint16]int {
	owners := make(map[uint16]int)
	several := make(map[uint16]bool)
	add := func(pid int, ports []netip.AddrPort) {
		for _, at := range ports {
			if !at.Addr().IsLoopback() && !at.Addr().IsUnspecified() {
				continue
			}
			if other, ok := owners[at.Port()]; ok && other != pid {
				several[at.Port()] = true
			}
			owners[at.Port()] = pid
		}
	}
	for _, e := range s.engines() {
		add(e.pid, e.ports)
		for _, r := range e.runners {
			add(r.pid, r.ports)
		}
	}
	for port := range several {
		delete(owners, port)
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
