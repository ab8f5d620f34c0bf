package host

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	llmruntime "github.com/llmtop/llmtop/runtime"
)

// samples collects what a Sampler emits and ends it after so many.
type samples struct {
	mu    sync.Mutex
	got   []event.Event
	want  int
	ended context.CancelFunc
}

func (s *samples) Emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, e)
	if len(s.got) == s.want {
		s.ended()
	}
}

// TestSampler samples this very process.
func TestSampler(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	sink := &samples{want: 3, ended: cancel}
	s := New(Options{Clock: llmruntime.NewClock(), Interval: 20 * time.Millisecond})
	if err := s.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
	last := sink.got[len(sink.got)-1]
	h, ok := last.Data.(*event.Host)
	if !ok || last.Kind != event.KindHost || last.At <= sink.got[0].At {
		t.Fatalf("last event is %+v after one at %d", last, sink.got[0].At)
	}
	if h.Interval <= 0 || !h.CPU.OK() || len(h.Cores) == 0 || !h.MemTotal.OK() || !h.Self.RSS.OK() || h.Self.RSS.V < 1<<20 {
		t.Errorf("sample of this machine lacks something: %+v", h)
	}
	if !h.Self.GCCount.OK() || !h.Self.GCPause.OK() {
		t.Errorf("the garbage collector is not told: %+v", h.Self)
	}
	if h.CopyBandwidth.OK() {
		t.Error("a copy bandwidth although nothing measured it")
	}
	if h.Self.OutsideEngine.OK() {
		t.Error("a share outside the engine although its threads are not known")
	}
}

// fakeSystem is a process that uses cpu cores, of whose threads some have used engine seconds so far.
type fakeSystem struct {
	system
	cpu, engine event.Reading
}

func (f *fakeSystem) process(pid int, _ time.Duration, _ bool) event.Process {
	return event.Process{PID: pid, CPU: f.cpu}
}
func (f *fakeSystem) threads([]int) event.Reading { return f.engine }

// TestOutsideEngine checks llmtop's own share: the process less the threads that compute.
func TestOutsideEngine(t *testing.T) {
	threads := []int{7}
	system := &fakeSystem{cpu: event.Of(1.5), engine: event.Of(10)}
	s := New(Options{Clock: llmruntime.NewClock(), NoGPU: true, EngineThreads: func() []int { return threads }})
	s.os.close()
	s.os = system
	at := func(since time.Duration) event.Reading {
		p := system.process(1, since, false)
		s.outside(&p, since)
		return p.OutsideEngine
	}
	if got := at(0); got.OK() {
		t.Errorf("first sample = %v, want none", got)
	}
	system.engine = event.Of(12)
	if got := at(2 * time.Second); got != event.From(0.5) { // 1.5 cores, of which the engine used 2 s in 2 s
		t.Errorf("outside the engine = %+v, want 0.5 cores", got)
	}
	system.engine = event.Of(20)
	if got := at(2 * time.Second); got != event.From(0) { // ticks of 10 ms make it less than nothing
		t.Errorf("outside the engine = %+v, want 0", got)
	}
	threads = nil
	if got := at(2 * time.Second); got.OK() || got.Why() != "not reported" {
		t.Errorf("without threads = %+v, want not reported", got)
	}
}

func TestCopyBandwidth(t *testing.T) {
	if got := CopyBandwidth(1); !(got > 1e6) {
		t.Errorf("copy bandwidth = %v B/s, want some", got)
	}
	if ChildMain() {
		t.Error("the test is taken for a child")
	}
	hasChildMain.Store(false)
}
