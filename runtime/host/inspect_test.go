package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	llmruntime "github.com/llmtop/llmtop/runtime/engine"
)

// awaited waits for a sample that satisfies a condition.
type awaited struct {
	mu   sync.Mutex
	is   func(*event.Host) bool
	seen chan *event.Host
}

func (s *awaited) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok && s.is(h) {
		select {
		case s.seen <- h:
		default:
		}
	}
}

// TestInspect checks that expensive readings are reported after they were requested, not before.
func TestInspect(t *testing.T) {
	if !Inspects {
		t.Skip("this system does not report its page cache")
	}
	name := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(name, make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := New(Options{Clock: llmruntime.NewClock(), Interval: 10 * time.Millisecond, NoGPU: true})
	sink := &awaited{is: func(h *event.Host) bool { return h.ModelBytes.OK() }, seen: make(chan *event.Host, 1)}
	ended, n := make(chan error), NewInspector(os.Getpid)
	go func() { ended <- s.Run(ctx, n.In(sink)) }()
	go func() { ended <- n.Run(ctx, nil) }()
	n.Watch(name, true)
	if h := <-sink.seen; h.ModelBytes.V != 5000 || h.Engine.PSS.OK() {
		t.Errorf("file of %+v bytes, PSS %+v; want 5000 and no PSS, which was not requested", h.ModelBytes, h.Engine.PSS)
	}
	n.Inspect(name)
	if h := <-sink.seen; h.ModelBytes.V != 5000 || h.Engine.PSS == (event.Reading{}) && proportional(os.Getpid()).OK() {
		t.Errorf("file of %+v bytes, PSS %+v; want 5000 and a PSS", h.ModelBytes, h.Engine.PSS)
	}
	n.Watch("", false)
	cancel()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
}

// TestInspectorOfAnotherProcess checks that a path is that of the process which names it, and that samples keep what they
// have.
func TestInspectorOfAnotherProcess(t *testing.T) {
	if !Inspects {
		t.Skip("this system does not report its page cache")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.gguf"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60")
	other.Dir = dir
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed
	}()
	ctx, cancel := context.WithCancel(t.Context())
	n := NewInspector(func() int { return other.Process.Pid })
	ended := make(chan error)
	go func() { ended <- n.Run(ctx, nil) }()
	n.Watch("model.gguf", true)
	sink := &awaited{is: func(h *event.Host) bool { return h.ModelBytes.V == 5000 }, seen: make(chan *event.Host, 1)}
	for samples, found := n.In(sink), false; !found; {
		samples.Emit(event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(0.5), ModelBytes: event.MeasuredValue(7)}})
		select {
		case h := <-sink.seen:
			if found = true; h.CPU.V != 0.5 {
				t.Errorf("a sample lost its readings: %+v", h)
			}
		case <-time.After(time.Millisecond):
		}
	}
	sink.mu.Lock()
	sink.is = func(h *event.Host) bool { return h.ModelBytes.V == 7 }
	sink.mu.Unlock()
	n.In(sink).Emit(event.Event{Kind: event.KindHost, Data: &event.Host{ModelBytes: event.MeasuredValue(7)}})
	<-sink.seen // nothing was found since
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
