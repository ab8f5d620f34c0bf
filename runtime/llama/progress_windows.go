//go:build !nollama && (amd64 || arm64)

package llama

// progressWorks says whether the library can call back with a float, which Go's callbacks on Windows cannot take.
const progressWorks = false

func progressCallback() uintptr { return 0 }
