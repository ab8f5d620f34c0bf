package host

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	llmruntime "github.com/llmtop/llmtop/runtime/engine"
)

// samples collects the samples of a Sampler, and ends it after the wanted number.
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

// TestSampler samples this process.
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
		t.Errorf("the garbage collector is not reported: %+v", h.Self)
	}
	if len(h.ReadBandwidth) > 0 {
		t.Error("a read bandwidth although nothing measured it")
	}
	if h.Self.OutsideEngine.OK() {
		t.Error("a share outside the engine although its threads are not available")
	}
}

// TestLastSample checks that a run that is shorter than the interval has rates, and that the sampler does not sample
// again right after a sample.
func TestLastSample(t *testing.T) {
	for _, extra := range []int{0, 1} {
		ctx, cancel := context.WithCancel(t.Context())
		sink := &samples{want: 1 + extra, ended: cancel}
		s := New(Options{Clock: llmruntime.NewClock(), Interval: time.Hour, NoGPU: true, NoRead: true})
		for range extra {
			s.Sample(sink)
		}
		if err := s.Run(ctx, sink); err != nil {
			t.Fatal(err)
		}
		if h := sink.got[1].Data.(*event.Host); len(sink.got) != 2 || h.Interval <= 0 || !h.Self.RSS.OK() {
			t.Errorf("%d samples, the last %+v", len(sink.got), h)
		}
	}
}

// fakeSystem reports a process that uses cpu cores, and whose engine threads have used engine seconds so far.
type fakeSystem struct {
	system
	cpu, engine event.Reading
}

func (f *fakeSystem) process(pid int, _ time.Duration) event.Process {
	return event.Process{PID: pid, CPU: f.cpu}
}
func (f *fakeSystem) threads([]int) event.Reading { return f.engine }

// TestOutsideEngine checks llmtop's own use: the process without the engine's threads.
func TestOutsideEngine(t *testing.T) {
	threads := []int{7}
	system := &fakeSystem{cpu: event.MeasuredValue(1.5), engine: event.MeasuredValue(10)}
	s := New(Options{Clock: llmruntime.NewClock(), NoGPU: true, EngineThreads: func() []int { return threads }})
	s.os.close()
	s.os = system
	at := func(since time.Duration) event.Reading {
		p := system.process(1, since)
		s.outside(&p, since)
		return p.OutsideEngine
	}
	if got := at(0); got.OK() {
		t.Errorf("first sample = %v, want none", got)
	}
	system.engine = event.MeasuredValue(12)
	if got := at(2 * time.Second); got != event.DerivedValue(0.5) { // 1.5 cores, of which the engine used 2 s in 2 s
		t.Errorf("outside the engine = %+v, want 0.5 cores", got)
	}
	system.engine = event.MeasuredValue(20)
	if got := at(2 * time.Second); got != event.DerivedValue(0) { // ticks of 10 ms make it less than 0
		t.Errorf("outside the engine = %+v, want 0", got)
	}
	threads = nil
	if got := at(2 * time.Second); got.OK() || got.Absence() != "not reported" {
		t.Errorf("without threads = %+v, want not reported", got)
	}
}

func TestReadBandwidth(t *testing.T) {
	if got := ReadBandwidth(1); !(got > 1e6) {
		t.Errorf("read bandwidth = %v B/s, want some", got)
	}
	if ChildMain() {
		t.Error("the test is mistaken for a child")
	}
	hasChildMain.Store(false)
}
