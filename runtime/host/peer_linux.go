package host

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// started returns when a process started, in clock ticks since the machine did; ok is false once it has ended.
func started(pid int) (at uint64, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	p, ok := parseProcess(stat)
	return p.started, err == nil && ok && p.state != 'Z' && p.state != 'X'
}

// Listening returns the process that listens at the other end of a Unix socket, 0 if unknown: a process in another
// namespace has no number here.
func Listening(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// Holds reports whether the process with a number, as it says itself, is the other end of a connection. What only
// forwards the connection, and a process in another namespace, whose number is another one here, are not.
func Holds(pid int, conn net.Conn) bool {
	switch c := conn.(type) {
	case *net.UnixConn:
		return pid != 0 && Listening(c) == pid
	case *net.TCPConn:
		return holdsTCP(pid, c)
	}
	return false
}

// holdsTCP is Holds for TCP: the other end is a socket of this machine that the process has open.
func holdsTCP(pid int, conn *net.TCPConn) (held bool) {
	here, there := endpoint(conn.LocalAddr()), endpoint(conn.RemoteAddr())
	if !there.Addr().IsLoopback() {
		return false
	}
	inodes := map[uint64]bool{}
	readSockets("/proc/net", stateEstablished, func(local, remote netip.AddrPort, inode, _ uint64) {
		inodes[inode] = inodes[inode] || inode != 0 && local == there && remote == here
	})
	_ = SocketsOf(filepath.Join("/proc", strconv.Itoa(pid)), func(inode uint64) { held = held || inodes[inode] }) // not readable: not known
	return held
}

// endpoint returns an address of TCP.
func endpoint(a net.Addr) netip.AddrPort {
	tcp, _ := a.(*net.TCPAddr)
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
