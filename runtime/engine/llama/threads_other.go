//go:build !nollama && (darwin || windows) && (amd64 || arm64)

package llama

// threadsStartedBy calls f. The threads that it starts cannot be identified on this system.
func threadsStartedBy(f func()) []int {
	f()
	return nil
}
