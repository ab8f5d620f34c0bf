package child

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStarved limits the memory of the process, and has its engine use it up.
func TestStarved(t *testing.T) {
	r := start(t, job{Fault: "hog", After: 9, Pace: 50})
	limit := unix.Rlimit{Cur: r.size(t) + 256<<20, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(r.PID(), unix.RLIMIT_AS, &limit, nil); err != nil {
		t.Fatal(err)
	}
	ended := r.failed(t, r.ask(t, "Call me Ishmael.", 100), "the engine's process")
	// Whoever finds no memory first has the last word: Go's allocator, the race detector's, or a thread that cannot be started.
	if told := ended.Error(); !strings.Contains(told, "about to hog") {
		t.Error(told)
	}
}

// size is the address space of the process, in bytes.
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
