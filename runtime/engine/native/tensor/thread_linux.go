package tensor

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ownThreads reports that goroutines can have their own threads and sleep in the kernel.
const ownThreads = true

// Operations of futex(2), private to this process.
const (
	futexWait = 128
	futexWake = 129
	everyone  = 1 << 30
)

// claimThread locks the calling goroutine to its thread permanently, names the thread as worker n for top -H and
// debuggers, and returns its thread id. Linux keeps 15 bytes of a name; the main thread keeps the name of the process.
func claimThread(n int) int {
	runtime.LockOSThread()
	id := syscall.Gettid()
	if id != os.Getpid() {
		_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", id), fmt.Appendf(nil, "llmtop-worker-%d", n), 0) // optional
	}
	return id
}

// dozeSpan is dozeTime as a kernel timespec.
var dozeSpan = syscall.NsecToTimespec(int64(dozeTime))

// sleepOn sleeps while word equals value, for at most dozeTime; it may return early. The system call is raw: of one that
// Go knows about, its monitor thread takes the processor away after 20 µs and then wakes up 50,000 times a second, often
// on the core of another worker, for which the others wait again. Decoding on two cores of two was 1.6 times as slow for
// seconds. The price is that stopping the world waits for a dozing worker, dozeTime at most.
func sleepOn(word *atomic.Uint32, value uint32) {
	span := uintptr(unsafe.Pointer(&dozeSpan)) // a global variable: it does not move
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), span, 0, 0)
}

// wakeAll wakes all threads that sleep on word. It does not block, so a raw system call is sufficient.
func wakeAll(word *atomic.Uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, everyone, 0, 0, 0)
}

// yield lets other threads run that wait for this core.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
