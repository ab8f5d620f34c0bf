package host

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ID identifies a process for as long as it lives: another one may get its number. The zero value identifies none.
type ID struct {
	PID     int
	Started uint64 // in the system's unit, such as clock ticks since the machine started
}

// Identify returns the process that has a number now, the zero value if there is none.
func Identify(pid int) ID {
	if pid <= 0 {
		return ID{}
	}
	at, ok := started(pid)
	if !ok {
		return ID{}
	}
	return ID{pid, at}
}

// Alive returns the number of the process, 0 once it has ended.
func (i ID) Alive() int {
	if i.PID == 0 || Identify(i.PID) != i {
		return 0
	}
	return i.PID
}

// Listener is a listening socket of TCP.
type Listener struct {
	At    netip.AddrPort
	Inode uint64
	User  uint64 // who opened it
}

// The states of sockets in /proc/net/tcp.
const (
	stateEstablished = "01"
	stateListen      = "0A"
)

// Listeners returns the listening sockets in a folder /proc/net; ok is false if they cannot be read.
func Listeners(dir string) (out []Listener, ok bool) {
	ok = readSockets(dir, stateListen, func(at, _ netip.AddrPort, inode, user uint64) { out = append(out, Listener{at, inode, user}) })
	return out, ok
}

// readSockets passes the sockets in a state to emit: both addresses, the inode and the user.
func readSockets(dir, state string, emit func(local, remote netip.AddrPort, inode, user uint64)) (ok bool) {
	for _, name := range []string{"tcp", "tcp6"} {
		if file, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			parseSockets(file, state, emit)
			ok = true
		}
	}
	return ok
}

// parseSockets reads /proc/net/tcp or tcp6. It skips malformed lines.
func parseSockets(file []byte, state string, emit func(local, remote netip.AddrPort, inode, user uint64)) {
	for line := range bytes.Lines(file) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != state {
			continue
		}
		local, ok := parseEndpoint(f[1])
		remote, found := parseEndpoint(f[2])
		user, unknown := strconv.ParseUint(f[7], 10, 64)
		if inode, err := strconv.ParseUint(f[9], 10, 64); ok && found && err == nil && unknown == nil {
			emit(local, remote, inode, user)
		}
	}
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

// maxFiles limits the open files read per process.
const maxFiles = 16 << 10

// SocketsOf passes the inodes of the sockets that a process has open to visit. dir is its folder in /proc.
func SocketsOf(dir string, visit func(inode uint64)) error {
	files, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return err
	}
	defer files.Close()
	names, _ := files.Readdirnames(maxFiles)
	for _, name := range names {
		link, _ := os.Readlink(filepath.Join(dir, "fd", name))
		inode, ok := strings.CutPrefix(strings.TrimSuffix(link, "]"), "socket:[")
		if n, err := strconv.ParseUint(inode, 10, 64); ok && err == nil {
			visit(n)
		}
	}
	return nil
}
