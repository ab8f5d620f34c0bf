//go:build !linux || nollama || !(amd64 || arm64)

package host

import "errors"

// loadNVML finds no library: NVML is supported on Linux only.
func loadNVML(string) (*nvmlFunctions, error) {
	return nil, errors.New("not supported on this system")
}

func threadTime() uint64 { return 0 }
