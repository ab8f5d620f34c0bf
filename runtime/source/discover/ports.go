package discover

import "net/netip"

// reachable returns the address at which this machine reaches a listener at a.
func reachable(a netip.AddrPort) netip.AddrPort {
	switch {
	case a.Addr() == netip.IPv6Unspecified(), a.Addr() == netip.IPv4Unspecified(): // :: accepts IPv4 too, by default
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	return a
}
