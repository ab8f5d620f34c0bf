package discover

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// listener is a listening socket.
type listener struct {
	at    netip.AddrPort
	inode uint64
}

// stateListen is the state of a listening socket in /proc/net/tcp.
const stateListen = "0A"

// parseListeners appends the listening sockets in /proc/net/tcp or tcp6 to dst. It skips malformed lines.
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

// parseEndpoint reads an address in /proc/net/tcp: hexadecimal words of 32 bits in little-endian order (Linux on amd64
// and arm64), and the port.
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

// reachable returns the address at which this machine reaches a listener at a.
func reachable(a netip.AddrPort) netip.AddrPort {
	switch {
	case a.Addr() == netip.IPv6Unspecified(), a.Addr() == netip.IPv4Unspecified(): // :: accepts IPv4 too, by default
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	return a
}
