package store

import (
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestHostPointCountsTokens checks that each machine sample has the gaps of the tokens since the previous one.
func TestHostPointCountsTokens(t *testing.T) {
	p := newSession()
	sample := func() {
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: int64(time.Second), CPU: event.MeasuredValue(.5)}})
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
		t.Fatalf("%+v, want gaps in the second sample only", h.Series)
	}
	if got := h.Series[1]; math.Abs(got.ITL-70e6/3) > 1 || got.Tokens != 4 || got.V[event.GaugeCPU] != .5 {
		t.Errorf("%+v, want the mean of 10, 30 and 30 ms, and 4 tokens", got)
	}
	if at, ok := h.SampleAt(h.Series[1].At - 1); !ok || at != &h.Series[1] {
		t.Errorf("the sample just before the second stamp is %+v, want the second", at)
	}
	for _, outside := range []event.Time{h.Series[0].At - event.Time(2*time.Second), h.Series[2].At + 1} {
		if at, ok := h.SampleAt(outside); ok {
			t.Errorf("the sample at %d is %+v, want none", outside, at)
		}
	}
	if n := len(h.SamplesWithin(metric.Second, h.Series[2].At)); n != 2 {
		t.Errorf("%d samples within the last second, want 2", n)
	}
	if n := len(h.SamplesWithin(metric.Session, h.Series[2].At)); n != 3 {
		t.Errorf("%d samples of the session, want 3", n)
	}
}

// TestInspectionIsKept checks that readings of a single sample are kept with their time.
func TestInspectionIsKept(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		ModelBytes: event.MeasuredValue(9), ModelCached: event.Absent(event.NotPermitted), Engine: event.Process{PSS: event.MeasuredValue(7)},
	}})
	at := p.now
	p.emit(sec, event.Event{Kind: event.KindHost, Data: &event.Host{}})
	h := p.store.Snapshot().Host
	if h.Engine.PSS != event.MeasuredValue(7) || h.ModelBytes != event.MeasuredValue(9) || h.ModelCached != event.Absent(event.NotPermitted) {
		t.Errorf("PSS %+v, model %+v, of it cached %+v", h.Engine.PSS, h.ModelBytes, h.ModelCached)
	}
	if h.PSSAt != at || h.ModelAt != at {
		t.Errorf("read at %d and %d, want %d", h.PSSAt, h.ModelAt, at)
	}
}

// TestGaugesOfGPUs checks how the readings of several GPUs combine.
func TestGaugesOfGPUs(t *testing.T) {
	h := &event.Host{GPUs: []event.GPU{
		{Util: event.MeasuredValue(.2), MemUsed: event.MeasuredValue(10), Power: event.MeasuredValue(100), Temperature: event.MeasuredValue(40), Clock: event.MeasuredValue(1e9)},
		{Util: event.MeasuredValue(.6), MemUsed: event.MeasuredValue(30), Power: event.MeasuredValue(50), Temperature: event.MeasuredValue(60)},
	}}
	for g, want := range map[event.Gauge]event.Reading{
		event.GaugeGPU: event.DerivedValue(.4), event.GaugeGPUMemory: event.DerivedValue(40), event.GaugeGPUPower: event.DerivedValue(150), event.GaugeGPUTemperature: event.DerivedValue(60), event.GaugeGPUClock: {},
	} {
		if got := g.Reading(h); math.Abs(got.V-want.V) > 1e-9 || got.Origin != want.Origin {
			t.Errorf("gauge %d = %+v, want %+v", g, got, want)
		}
	}
	if got := event.GaugeGPU.Reading(&event.Host{}); got.OK() || got.Absence() != "no device" {
		t.Errorf("reading without GPUs: %+v", got)
	}
	h = &event.Host{Engine: event.Process{PID: 1, CPU: event.MeasuredValue(3)}, Self: event.Process{PID: 2, CPU: event.MeasuredValue(.5), OutsideEngine: event.MeasuredValue(.1)}}
	if got := event.GaugeSelfCPU.Reading(h); got.V != .5 {
		t.Errorf("CPU of llmtop beside an engine: %+v, want that of the whole process", got)
	}
	h.Self.PID = 1
	if got := event.GaugeSelfCPU.Reading(h); got.V != .1 {
		t.Errorf("CPU of llmtop with the engine inside: %+v, want that outside the engine", got)
	}
}

// TestDeviceOfEngine checks that an engine that does not report its device has the GPUs on which it has memory.
func TestDeviceOfEngine(t *testing.T) {
	p := newSession()
	used, none := event.MeasuredValue(1), event.MeasuredValue(0)
	for _, c := range []struct {
		gpus []event.GPU
		want string
	}{
		{nil, ""},
		{[]event.GPU{{Name: "H200", EngineMem: used}, {Name: "H200", EngineMem: none}, {Name: "T4"}}, "H200"},
		{[]event.GPU{{Name: "H200", EngineMem: used}, {Name: "H200", EngineMem: used}}, "2 x H200"},
		{[]event.GPU{{Name: "H200", EngineMem: used}, {Name: "T4", EngineMem: used}}, "2 x GPU"},
	} {
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", State: event.EngineReady}})
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{GPUs: c.gpus}})
		if got := p.store.Snapshot().Engine.Device.Name; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", State: event.EngineReady, Device: event.Device{Name: "TPU"}}})
		if got := p.store.Snapshot().Engine.Device.Name; got != "TPU" {
			t.Errorf("%q, want what the engine reports", got)
		}
	}
}
