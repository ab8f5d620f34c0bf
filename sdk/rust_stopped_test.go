//go:build unix

package sdk

import (
	"strings"
	"syscall"
	"testing"
)

// TestStoppedRust: an engine that is suspended cannot send its pid, but keeps its socket.
func TestStoppedRust(t *testing.T) {
	t.Parallel()
	address := "ADDRESS=unix:" + Socket(t)
	p := Start(t, exampleEngine(t), address)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if why := Refused(t, exampleEngine(t), address); !strings.Contains(why, "is held by a live engine that does not report its pid") {
		t.Errorf("rejected with: %s", why)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	Connect(t, p.Address, check).Read("synced")
	p.Go()
	p.Done()
	p.End()
}
