//go:build amd64 || arm64

package tensor

// pause executes n > 0 pause instructions, which make a spin loop cheaper for the other thread of the core.
//
//go:noescape
func pause(n uint32)
