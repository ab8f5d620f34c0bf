//go:build !nollama && (amd64 || arm64)

package llama

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poolName is the name of the library's threads. Threads inherit their creator's name. Go starts its own threads from
// another thread while a goroutine is locked to this one, so the name identifies the library's threads.
const poolName = "llmtop-llama"

// threadsStartedBy calls f on a thread with that name and returns the ids of the threads that it started; nil if not
// available.
func threadsStartedBy(f func()) []int {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	self := unix.Gettid()
	old, err := os.ReadFile(taskName(self))
	before, ok := threadsNamed(poolName)
	if err != nil || !ok || rename(poolName) != nil {
		f()
		return nil
	}
	f()
	_ = rename(strings.TrimSpace(string(old))) // restore the previous name
	after, ok := threadsNamed(poolName)
	if !ok {
		return nil
	}
	ids := make([]int, 0, len(after))
	for _, id := range after {
		if id != self && !slices.Contains(before, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// rename names the calling thread.
func rename(name string) error {
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(b)), 0, 0, 0)
}

func taskName(id int) string {
	return filepath.Join("/proc/self/task", strconv.Itoa(id), "comm")
}

// threadsNamed returns the ids of this process's threads with a name; false if the system does not report them.
func threadsNamed(name string) (ids []int, ok bool) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		if comm, err := os.ReadFile(taskName(id)); err == nil && strings.TrimSpace(string(comm)) == name {
			ids = append(ids, id)
		}
	}
	return ids, true
}
