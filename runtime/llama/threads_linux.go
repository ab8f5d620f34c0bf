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

// poolName is the name of the threads that the library starts. Threads inherit their creator's name, and Go starts its own ones
// from another thread while a goroutine is locked to this one, so the name tells the two apart.
const poolName = "llmtop-llama"

// started calls f on a thread of that name and returns the ids of the threads that it has started; nil where that cannot be told.
func started(f func()) []int {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	self := unix.Gettid()
	old, err := os.ReadFile(taskName(self))
	before, known := named(poolName)
	if err != nil || !known || rename(poolName) != nil {
		f()
		return nil
	}
	f()
	_ = rename(strings.TrimSpace(string(old))) // a name that was taken once
	after, known := named(poolName)
	if !known {
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

// named are the ids of this process's threads of a name; false where the system does not say.
func named(name string) (ids []int, known bool) {
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
