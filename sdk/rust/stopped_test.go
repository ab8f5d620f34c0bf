//go:build unix

package rust

import (
	"strings"
	"syscall"
	"testing"

	"github.com/llmtop/llmtop/sdk/c/harness"
)

// TestStopped: an engine that is suspended cannot send its pid, but keeps its socket.
func TestStopped(t *testing.T) {
	t.Parallel()
	address := "ADDRESS=unix:" + harness.Socket(t)
	p := harness.Start(t, exampleEngine(t), address)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if why := harness.Refused(t, exampleEngine(t), address); !strings.Contains(why, "is held by a live engine that does not report its pid") {
		t.Errorf("rejected with: %s", why)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.Connect(t, p.Address, check()).Read("synced")
	p.Go()
	p.Done()
	p.End()
}
