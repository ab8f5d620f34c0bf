//go:build !nollama && (darwin || windows) && (amd64 || arm64)

package llama

// started calls f. Which threads it starts is not known on this system.
func started(f func()) []int {
	f()
	return nil
}
