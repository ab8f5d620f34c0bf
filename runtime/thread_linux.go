package runtime

import (
	"fmt"
	"os"
	"syscall"
)

// claimThread names the calling goroutine's thread for top -H and debuggers, and returns the operating system's id of it. The
// name of the first thread is that of the process and stays.
func claimThread(name string) int {
	id := syscall.Gettid()
	if id != os.Getpid() {
		_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", id), []byte(name), 0) // works nameless, too
	}
	return id
}
