//go:build !nollama && (amd64 || arm64)

package llama

// progressWorks is false: Go callbacks on Windows cannot take floats.
const progressWorks = false

func progressCallback() uintptr { return 0 }
