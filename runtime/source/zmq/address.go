package zmq

import (
	"fmt"
	"net"
	"strings"
)

// address splits tcp://HOST:PORT or ipc://PATH into network and address.
func address(at string) (network, where string, err error) {
	if path, ok := strings.CutPrefix(at, "ipc://"); ok && path != "" {
		return "unix", path, nil
	}
	where, ok := strings.CutPrefix(at, "tcp://")
	host, port, err := net.SplitHostPort(where)
	if !ok || err != nil || port == "" {
		return "", "", fmt.Errorf("read address %q: want tcp://HOST:PORT or ipc://PATH", at)
	}
	if host == "*" || host == "" { // the server's bind address: all interfaces
		where = net.JoinHostPort("127.0.0.1", port)
	}
	return "tcp", where, nil
}
