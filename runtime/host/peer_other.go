//go:build !linux

package host

import (
	"net"

	"github.com/shirou/gopsutil/v4/process"
)

// started returns when a process started, in ms; ok is false once it has ended.
func started(pid int) (at uint64, ok bool) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, false
	}
	ms, err := p.CreateTime()
	return uint64(max(ms, 0)), err == nil
}

// Listening returns 0: the system does not say who listens.
func Listening(*net.UnixConn) int { return 0 }

// Holds returns false: the system does not say whose the other end of a connection is.
func Holds(int, net.Conn) bool { return false }
