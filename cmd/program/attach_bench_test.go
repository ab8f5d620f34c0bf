//go:build linux

package program_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// emitter is an engine that computes nothing and emits tokens of eight endless requests over a socket.
type emitter struct {
	*socket.Server
	clock engine.Clock
	sent  int32
}

// emitterRequests is the number of requests of an emitter.
const emitterRequests = 8

func newEmitter(b *testing.B) *emitter {
	b.Helper()
	e := &emitter{clock: engine.NewClock()}
	var err error
	e.Server, err = socket.Listen("unix:"+filepath.Join(b.TempDir(), "engine.sock"), socket.Options{Clock: e.clock})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	e.Emit(event.Event{Kind: event.KindEngine, At: e.clock.Now(), Layer: -1, Data: &event.EngineInfo{
		Name: "emitter", Caps: event.CapTokens | event.CapQueue, State: event.EngineReady,
	}})
	for id := range event.RequestID(emitterRequests) {
		for _, state := range []event.State{event.StateQueued, event.StateDispatched} {
			queued := event.Event{Kind: event.KindRequest, At: e.clock.Now(), Req: id + 1, State: state, Layer: -1}
			if state == event.StateQueued {
				queued.Data = &event.Request{}
			}
			e.Emit(queued)
		}
	}
	return e
}

// run emits rate tokens per second for a while, in batches every millisecond.
func (e *emitter) run(rate int, span time.Duration) (perSecond float64) {
	began, sent := time.Now(), 0
	for elapsed := time.Duration(0); elapsed < span; elapsed = time.Since(began) {
		for due := int(float64(rate) * elapsed.Seconds()); sent < due; sent++ {
			e.Emit(event.Event{
				Kind: event.KindToken, At: e.clock.Now(), Req: event.RequestID(e.sent%emitterRequests) + 1, Layer: -1, ID: e.sent % 4096, N: 1, Index: e.sent / emitterRequests,
			})
			e.sent++
		}
		time.Sleep(time.Millisecond)
	}
	return float64(sent) / time.Since(began).Seconds()
}

// attached starts llmtop on an emitter.
func attached(b *testing.B) (*emitter, *program) {
	b.Helper()
	e := newEmitter(b)
	p := start(b, 160, 45, "attach", e.Address())
	p.waitFor(b, "connected", "dropped 0")
	return e, p
}

// BenchmarkAttachedSlow measures the whole program next to an engine with 1,000 tokens/s.
func BenchmarkAttachedSlow(b *testing.B) {
	e, p := attached(b)
	for b.Loop() {
		ended := make(chan float64)
		go func() { ended <- e.run(1000, 16*time.Second) }()
		time.Sleep(3 * time.Second)
		p.watch(b, 10*time.Second)
		b.ReportMetric(<-ended, "tokens/s")
	}
}

// BenchmarkAttachedFast measures how many tokens/s reach the store of another process with the screen on, without
// drops.
func BenchmarkAttachedFast(b *testing.B) {
	e, p := attached(b)
	for b.Loop() {
		most := 0.0
		for rate := 100_000; rate <= 3_000_000; rate += 100_000 {
			reached := e.run(rate, 2*time.Second)
			time.Sleep(time.Second)
			if !strings.Contains(p.text(), "dropped 0") || !strings.Contains(p.text(), "missed 0") {
				break
			}
			most = max(most, reached)
		}
		b.ReportMetric(most, "events/s")
		b.ReportMetric(resident(b, p.cmd.Process.Pid), "MB-RSS")
	}
}

// BenchmarkAttachedSoak measures the resident size after ten million tokens of endless requests.
func BenchmarkAttachedSoak(b *testing.B) {
	const rate, total = 400_000, 10_000_000
	e, p := attached(b)
	for b.Loop() {
		e.run(rate, total/rate*time.Second)
		time.Sleep(time.Second)
		if !strings.Contains(p.text(), "dropped 0") {
			b.Errorf("events were lost:\n%s", p.text())
		}
		b.ReportMetric(resident(b, p.cmd.Process.Pid), "MB-RSS")
	}
}

// tap is a sink that can be turned off.
type tap struct {
	on   atomic.Bool
	sink event.Sink
}

func (t *tap) Emit(e event.Event) {
	if t.on.Load() {
		t.sink.Emit(e)
	}
}

// BenchmarkReaders measures what it costs the engine to be measured and to send events over a socket: to nobody, to
// llmtop on a screen, and to a stopped llmtop. Each is compared, in turns, with hooks off and no events. The engine has
// one thread, so that readers have their own core.
func BenchmarkReaders(b *testing.B) {
	clock := engine.NewClock()
	load := func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
		return native.OpenDemo(native.Options{Threads: 1, Report: report})
	}
	s := engine.New(load, engine.Options{Clock: clock, Sampler: native.NewSampler})
	server, err := socket.Listen("unix:"+filepath.Join(b.TempDir(), "engine.sock"), socket.Options{Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	t := &tap{sink: server}
	t.on.Store(true)
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, t) }()
	b.Cleanup(func() {
		stop()
		<-ended
	})
	cost := func() float64 { // of sending, in percent
		var ratios []float64
		for i := range 60 {
			var took [2]float64 // without and with events
			for turn := range 2 {
				on := (i + turn) % 2 // alternate which goes first
				took[on] = t.measure(b, s, on == 1)
			}
			ratios = append(ratios, 100*(took[1]/took[0]-1))
		}
		slices.Sort(ratios)
		return ratios[len(ratios)/2]
	}
	for b.Loop() {
		t.measure(b, s, true)
		b.ReportMetric(cost(), "%-absent")
		p := start(b, 160, 45, "attach", server.Address())
		p.waitFor(b, "connected", "llmtop demo MoE")
		b.ReportMetric(cost(), "%-attached")
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(cost(), "%-stalled")
		p.kill()
	}
}

// measured is the number of tokens generated per measurement.
const measured = 900

// measure returns the time of a generation, with hooks and events or without.
func (t *tap) measure(b *testing.B, s *engine.Scheduler, on bool) float64 {
	b.Helper()
	s.SetHooks(engine.Hooks{Split: on, Experts: on})
	t.on.Store(on)
	h, err := s.Submit(engine.Request{Text: "Call me Ishmael.", MaxTokens: measured, IgnoreEOS: true, Params: engine.Params{Seed: 1}})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	<-h.Done()
	if r := h.Result(); r.Generated != measured {
		b.Fatalf("%d tokens were generated: %v", r.Generated, r.Err)
	}
	return time.Since(began).Seconds()
}
