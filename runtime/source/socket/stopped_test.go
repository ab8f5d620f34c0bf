//go:build unix

package socket

import (
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// stop stops a process and waits until it is stopped.
func (o *other) stop(t *testing.T) {
	t.Helper()
	if err := o.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	for !status.Stopped() {
		if _, err := syscall.Wait4(o.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
}

func (o *other) resume(t *testing.T) {
	t.Helper()
	if err := o.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestReaderIsStopped stops a reader with SIGSTOP for ten seconds. The engine continues and emits everything before the
// reader continues. Then both sides agree, kind by kind, on received and dropped events, and the totals are right.
func TestReaderIsStopped(t *testing.T) {
	t.Parallel()
	s := server(t, path(t), Options{})
	c := &crowd{Server: s}
	watcher := play(t, "reader", s.Address())
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	c.burst()
	if a := watcher.account(t, c); a.Came != c.emitted || a.Lost.Total() != 0 || a.Link != event.LinkConnected {
		t.Fatalf("before the stop: %+v of %v", a, c.emitted)
	}
	watcher.stop(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		<-tick.C
		c.burst()
	}
	watcher.resume(t)
	c.end()
	watcher.account(t, c)
	a := watcher.account(t, c) // by now the drops were reported
	s.mu.Lock()
	var own *reader
	for r := range s.readers {
		own = r
	}
	s.mu.Unlock()
	if err := s.Close(); err != nil { // which ends the goroutine that own belongs to
		t.Error(err)
	}
	c.check(t, &a, own)
	t.Logf("of %d events %d arrived and %d were dropped", c.emitted.Total(), a.Came.Total(), a.Lost.Total())
}

// check compares the accounts of both sides with what was emitted.
func (c *crowd) check(t *testing.T, a *account, own *reader) {
	t.Helper()
	for k := range event.NumKinds {
		if a.Came[k]+a.Lost[k] != c.emitted[k] {
			t.Errorf("%v: %d arrived and %d were dropped of %d", k, a.Came[k], a.Lost[k], c.emitted[k])
		}
	}
	if a.Lost != own.lost || a.Shown != own.lost || a.Came.Total() != own.sent || a.Missing != 0 {
		t.Errorf("the engine counts %d sent and %v dropped, the reader %d and %v, shows %v, and misses %d", own.sent, own.lost, a.Came.Total(), a.Lost, a.Shown, a.Missing)
	}
	if a.Lost[event.KindToken] == 0 {
		t.Error("nothing was dropped: the test tests nothing")
	}
	if a.Generated != uint64(c.tokens) || a.Finished != uint64(c.request)-1 {
		t.Errorf("the store counts %d tokens of %d and %d requests of %d", a.Generated, c.tokens, a.Finished, c.request-1)
	}
	if a.Link != event.LinkConnected || a.Jumps != 0 || a.Garbage != 0 {
		t.Errorf("link %v, %d jumps of the clock, %d malformed lines", a.Link, a.Jumps, a.Garbage)
	}
}
