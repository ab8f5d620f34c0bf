package child

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOutOfMemory limits the memory of the process and makes its engine exhaust it.
func TestOutOfMemory(t *testing.T) {
	r := start(t, job{Fault: "hog", After: 9, Pace: 50})
	limit := unix.Rlimit{Cur: r.size(t) + 256<<20, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(r.PID(), unix.RLIMIT_AS, &limit, nil); err != nil {
		t.Fatal(err)
	}
	ended := r.failed(t, r.ask(t, "Call me Ishmael.", 100), "the engine's process")
	// The last message comes from the first part that fails: Go's allocator, the race detector's, or a thread that
	// cannot start.
	// started.
	if message := ended.Error(); !strings.Contains(message, "about to hog") {
		t.Error(message)
	}
}

// size returns the address space of the process in bytes.
func (r *running) size(t *testing.T) uint64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(raw), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}
