package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer is the pid of the process that listens at the other end of a connection, 0 if it is not known.
func peer(conn net.Conn) int {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	return pid
}
