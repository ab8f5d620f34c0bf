//go:build !linux

package socket

import "net"

// peer returns 0: the pid is then read from the engine's introduction.
func peer(net.Conn) int { return 0 }
