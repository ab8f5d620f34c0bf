//go:build !linux

package capture

import (
	"errors"
	"fmt"
	"runtime"
)

// OpenLive returns an error: the ring of packets is Linux's.
func OpenLive(port uint16) (*Source, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("capture packets: not supported on Windows: record them with Wireshark, and run llmtop tap FILE")
	}
	return nil, fmt.Errorf("capture packets: not supported on this system: run sudo tcpdump -i lo0 -U -w - tcp port %d | llmtop tap -", port)
}
