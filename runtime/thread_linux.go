package runtime

import "syscall"

// threadID is the operating system's id of the calling thread.
func threadID() int { return syscall.Gettid() }
