package zmq

import (
	"fmt"
	"net"
	"strings"
)

// address is the network and the address of tcp://HOST:PORT or ipc://PATH.
func address(at string) (network, where string, err error) {
	if path, ok := strings.CutPrefix(at, "ipc://"); ok && path != "" {
		return "unix", path, nil
	}
	where, ok := strings.CutPrefix(at, "tcp://")
	host, port, err := net.SplitHostPort(where)
	if !ok || err != nil || port == "" {
		return "", "", fmt.Errorf("read address %q: want tcp://HOST:PORT or ipc://PATH", at)
	}
	if host == "*" || host == "" { // as the server was told to listen
		where = net.JoinHostPort("127.0.0.1", port)
	}
	return "tcp", where, nil
}
