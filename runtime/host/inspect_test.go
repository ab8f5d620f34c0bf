package host

import (
	"context"
	"os"
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
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, sink) }()
	s.Watch(name, true)
	if h := <-sink.seen; h.ModelBytes.V != 5000 || h.Engine.PSS.OK() {
		t.Errorf("file of %+v bytes, PSS %+v; want 5000 and no PSS, which was not requested", h.ModelBytes, h.Engine.PSS)
	}
	s.Inspect(name)
	if h := <-sink.seen; h.ModelBytes.V != 5000 || h.Engine.PSS == (event.Reading{}) && proportional(os.Getpid()).OK() {
		t.Errorf("file of %+v bytes, PSS %+v; want 5000 and a PSS", h.ModelBytes, h.Engine.PSS)
	}
	s.Watch("", false)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
