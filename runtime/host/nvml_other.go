//go:build !linux || nollama || !(amd64 || arm64)

package host

import "errors"

// loadNVML finds no library: llmtop looks for NVML on Linux.
func loadNVML(string) (*nvmlFunctions, error) {
	return nil, errors.New("not looked for on this system")
}
