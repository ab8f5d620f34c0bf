package discover

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// listener is a socket that takes connections.
type listener struct {
	at    netip.AddrPort
	inode uint64
}

// stateListen is the state of a listening socket in /proc/net/tcp.
const stateListen = "0A"

// parseListeners reads /proc/net/tcp or tcp6: the sockets that listen, appended to dst. Lines that make no sense are left out.
func parseListeners(dst []listener, file []byte) []listener {
	for line := range bytes.Lines(file) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != stateListen {
			continue
		}
		at, ok := parseEndpoint(f[1])
		inode, err := strconv.ParseUint(f[9], 10, 64)
		if ok && err == nil {
			dst = append(dst, listener{at, inode})
		}
	}
	return dst
}

// parseEndpoint reads an address as /proc/net/tcp has it: hexadecimal words of 32 bits, each with its bytes turned round (on every machine
// that Go's Linux ports for amd64 and arm64 run on), and the port.
func parseEndpoint(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(ip)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

// reachable is the address by which something that listens at a is reached from this machine.
func reachable(a netip.AddrPort) netip.AddrPort {
	switch {
	case a.Addr() == netip.IPv6Unspecified(), a.Addr() == netip.IPv4Unspecified(): // :: takes connections of both, unless told otherwise
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	return a
}
