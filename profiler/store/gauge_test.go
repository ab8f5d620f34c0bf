package store

import (
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestTokensBetweenSamples checks that each sample has the gaps of the tokens that came since the one before.
func TestTokensBetweenSamples(t *testing.T) {
	p := newPlay()
	sample := func() {
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: int64(time.Second), CPU: event.Of(.5)}})
	}
	p.emit(0, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued})
	sample()
	p.emit(0, event.Event{Kind: event.KindToken, Req: 1})
	p.emit(10*ms, event.Event{Kind: event.KindToken, Req: 1})
	p.emit(60*ms, event.Event{Kind: event.KindToken, Req: 1, N: 2}) // two of 30 ms each
	p.emit(sec, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateFinished})
	sample()
	p.emit(sec, event.Event{Kind: event.KindRequest, Req: 2, State: event.StateQueued})
	sample()
	h := p.store.Snapshot().Host
	if len(h.Series) != 3 || !math.IsNaN(h.Series[0].ITL) || !math.IsNaN(h.Series[2].ITL) || h.Series[2].Tokens != 0 {
		t.Fatalf("%+v, want gaps in the second sample alone", h.Series)
	}
	if got := h.Series[1]; math.Abs(got.ITL-70e6/3) > 1 || got.Tokens != 4 || got.V[GaugeCPU] != .5 {
		t.Errorf("%+v, want the mean of 10, 30 and 30 ms, and 4 tokens", got)
	}
	if at, ok := h.Around(h.Series[1].At - 1); !ok || at != &h.Series[1] {
		t.Errorf("around a moment before the second sample there is %+v", at)
	}
	for _, none := range []event.Time{h.Series[0].At - event.Time(2*time.Second), h.Series[2].At + 1} {
		if at, ok := h.Around(none); ok {
			t.Errorf("around %d there is %+v", none, at)
		}
	}
	if n := len(h.Within(metric.Second, h.Series[2].At)); n != 2 {
		t.Errorf("%d samples within the last second, want 2", n)
	}
	if n := len(h.Within(metric.Session, h.Series[2].At)); n != 3 {
		t.Errorf("%d samples of the session, want 3", n)
	}
}

// TestLookedStays checks that what is told in one sample alone is kept with its moment.
func TestLookedStays(t *testing.T) {
	p := newPlay()
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		ModelBytes: event.Of(9), ModelCached: event.Absent(event.NotPermitted), Engine: event.Process{PSS: event.Of(7)},
	}})
	at := p.now
	p.emit(sec, event.Event{Kind: event.KindHost, Data: &event.Host{}})
	got := p.store.Snapshot().Host.Looked
	want := Looked{PSS: event.Of(7), ModelBytes: event.Of(9), ModelCached: event.Absent(event.NotPermitted), PSSAt: at, ModelAt: at}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestGaugesOfGPUs checks what several accelerators make together.
func TestGaugesOfGPUs(t *testing.T) {
	h := &event.Host{GPUs: []event.GPU{
		{Util: event.Of(.2), MemUsed: event.Of(10), Power: event.Of(100), Temperature: event.Of(40), Clock: event.Of(1e9)},
		{Util: event.Of(.6), MemUsed: event.Of(30), Power: event.Of(50), Temperature: event.Of(60)},
	}}
	for g, want := range map[Gauge]event.Reading{
		GaugeGPU: event.From(.4), GaugeGPUMemory: event.From(40), GaugeGPUPower: event.From(150), GaugeGPUHeat: event.From(60), GaugeGPUClock: {},
	} {
		if got := g.Of(h); math.Abs(got.V-want.V) > 1e-9 || got.Origin != want.Origin {
			t.Errorf("gauge %d = %+v, want %+v", g, got, want)
		}
	}
	if got := GaugeGPU.Of(&event.Host{}); got.OK() || got.Why() != "no device" {
		t.Errorf("no GPU reads %+v", got)
	}
	h = &event.Host{Engine: event.Process{PID: 1, CPU: event.Of(3)}, Self: event.Process{PID: 2, CPU: event.Of(.5), OutsideEngine: event.Of(.1)}}
	if got := GaugeSelfCPU.Of(h); got.V != .5 {
		t.Errorf("llmtop beside an engine = %+v, want all of it", got)
	}
	h.Self.PID = 1
	if got := GaugeSelfCPU.Of(h); got.V != .1 {
		t.Errorf("llmtop around its engine = %+v, want the rest", got)
	}
}
