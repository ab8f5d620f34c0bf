package tensor

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ownThreads says that goroutines can keep a thread each and sleep in the kernel.
const ownThreads = true

// Operations of futex(2), both among the threads of this process only.
const (
	futexWait = 128
	futexWake = 129
	everyone  = 1 << 30
)

// settle binds the calling goroutine to its thread for good, names the thread as worker n for top -H and debuggers, and returns the
// operating system's id of it. Linux keeps 15 bytes of a name; that of the first thread is the process's and stays.
func settle(n int) int {
	runtime.LockOSThread()
	id := syscall.Gettid()
	if id != os.Getpid() {
		_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", id), fmt.Appendf(nil, "llmtop-worker-%d", n), 0) // works nameless, too
	}
	return id
}

// dozeSpan is dozeTime as the kernel takes it.
var dozeSpan = syscall.NsecToTimespec(int64(dozeTime))

// await sleeps while word is value, for dozeTime at most; it may return early.
func await(word *atomic.Uint32, value uint32) {
	span := uintptr(unsafe.Pointer(&dozeSpan)) // a global: it does not move
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), span, 0, 0)
}

// rouse wakes all who sleep on word. It does not block, so that the scheduler need not hear of it.
func rouse(word *atomic.Uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, everyone, 0, 0, 0)
}

// yield lets other threads run that wait for this one's processor.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
