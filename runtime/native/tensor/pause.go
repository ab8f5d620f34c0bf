//go:build amd64 || arm64

package tensor

// pause tells the processor n times, n > 0, that this is a loop that waits for another core.
//
//go:noescape
func pause(n uint32)
