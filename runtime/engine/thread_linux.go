package engine

import (
	"fmt"
	"os"
	"syscall"
)

// claimThread names the calling goroutine's thread for top -H and debuggers, and returns its thread id. The main thread
// keeps the name of the process.
func claimThread(name string) int {
	id := syscall.Gettid()
	if id != os.Getpid() {
		_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", id), []byte(name), 0) // the name is optional
	}
	return id
}
