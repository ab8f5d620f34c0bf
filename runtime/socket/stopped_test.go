//go:build unix

package socket

import (
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// crowd emits events of many kinds and counts them.
type crowd struct {
	*Server
	emitted event.Lost
	tokens  int
	request event.RequestID
	ofIt    int // tokens of the present request
}

func (c *crowd) Emit(e event.Event) {
	e.At = c.opt.Clock.Now()
	c.emitted[e.Kind]++
	c.Server.Emit(e)
}

// burst is what an engine tells in ten milliseconds at 30,000 tokens a second.
func (c *crowd) burst() {
	if c.request == 0 {
		c.begin()
	}
	for i := range 300 {
		if i%10 == 0 {
			c.Emit(event.Event{Kind: event.KindStep, Layer: -1, Step: uint64(c.tokens/10 + 1), Dur: 1000, N: 10})
		}
		c.Emit(event.Event{Kind: event.KindToken, Layer: -1, Req: c.request, ID: int32(i), N: 1, Index: int32(c.ofIt), Step: uint64(c.tokens/10 + 1)})
		c.tokens++
		c.ofIt++
	}
	for range 5 {
		c.Emit(event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: c.request, Layer: 1, Dur: 1000})
		c.Emit(event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: int64(c.tokens), Total: 1 << 30}})
	}
	c.Emit(event.Event{Kind: event.KindCounters, Layer: -1, Data: &event.Counters{Values: []event.Counter{{Name: "generated_tokens", Value: float64(c.tokens)}}}})
	c.Emit(event.Event{Kind: event.KindHost, Layer: -1, Data: &event.Host{Interval: 1e7, CPU: event.Of(.5)}})
	c.Emit(event.Event{Kind: event.KindLog, Layer: -1, Text: "a line"})
	if c.ofIt >= 3000 {
		c.end()
	}
}

func (c *crowd) begin() {
	c.request++
	c.ofIt = 0
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateQueued, Data: &event.Request{}})
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateDispatched})
}

// end ends the present request and begins the next one.
func (c *crowd) end() {
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Generated: c.ofIt}})
	c.begin()
}

// stop stops a process and waits until it stands still.
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

// TestReaderIsStopped for ten seconds, by SIGSTOP. The engine goes on: it has emitted all that it would have emitted before the reader
// moves again. Then both sides agree, kind by kind, on what came and what was lost, and the totals are right nevertheless.
func TestReaderIsStopped(t *testing.T) {
	t.Parallel()
	s := server(t, path(t), Options{})
	c := &crowd{Server: s}
	watcher := play(t, "reader", s.Address())
	await(t, "the reader", func() bool { return s.Readers() == 1 })
	c.burst()
	if a := watcher.account(t, c); a.Came != c.emitted || a.Lost.Total() != 0 || a.Link != event.LinkConnected {
		t.Fatalf("before it is stopped: %+v of %v", a, c.emitted)
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
	a := watcher.account(t, c) // by now it has been told what it had lost
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
	t.Logf("of %d events %d came and %d were lost", c.emitted.Total(), a.Came.Total(), a.Lost.Total())
}

// check compares the accounts of both sides with what was emitted.
func (c *crowd) check(t *testing.T, a *account, own *reader) {
	t.Helper()
	for k := range event.NumKinds {
		if a.Came[k]+a.Lost[k] != c.emitted[k] {
			t.Errorf("%v: %d came and %d were lost of %d", k, a.Came[k], a.Lost[k], c.emitted[k])
		}
	}
	if a.Lost != own.lost || a.Shown != own.lost || a.Came.Total() != own.sent || a.Missing != 0 {
		t.Errorf("the engine counts %d sent and %v lost, the reader %d and %v, shows %v, and misses %d", own.sent, own.lost, a.Came.Total(), a.Lost, a.Shown, a.Missing)
	}
	if a.Lost[event.KindToken] == 0 {
		t.Error("nothing was lost: the test does not test")
	}
	if a.Generated != uint64(c.tokens) || a.Finished != uint64(c.request)-1 {
		t.Errorf("the store counts %d tokens of %d and %d requests of %d", a.Generated, c.tokens, a.Finished, c.request-1)
	}
	if a.Link != event.LinkConnected || a.Jumps != 0 || a.Garbage != 0 {
		t.Errorf("link %v, %d jumps of the clock, %d lines of garbage", a.Link, a.Jumps, a.Garbage)
	}
}
