package exposition

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

const (
	us  = int64(time.Microsecond)
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// play is an engine with a store and a clock that moves only when told.
type play struct {
	now    event.Time
	store  *store.Store
	engine *Engine
	sink   event.Tee
}

// join adds an engine to an exporter.
func join(x *Exporter, name string) *play {
	p := &play{now: event.Time(sec)}
	clock := func() event.Time { return p.now }
	p.engine = x.Add(name, clock)
	p.store = store.New(store.Options{Now: clock, OnRequest: p.engine.Request})
	p.engine.Watch(p.store.Snapshot)
	p.sink = event.Tee{p.store, p.engine}
	return p
}

// emit sends an event after a wait in ns.
func (p *play) emit(wait int64, e event.Event) {
	p.now += event.Time(wait)
	e.At = p.now
	p.sink.Emit(e)
}

func (p *play) state(wait int64, id event.RequestID, s event.State, data any) {
	p.emit(wait, event.Event{Kind: event.KindRequest, Req: id, State: s, Data: data})
}

func (p *play) stage(id event.RequestID, s event.Stage, dur int64, n int32) {
	p.emit(dur, event.Event{Kind: event.KindStage, Stage: s, Req: id, Layer: -1, Dur: dur, N: n})
}

func (p *play) token(wait int64, id event.RequestID, n int32) {
	p.emit(wait, event.Event{Kind: event.KindToken, Req: id, N: n})
}

// caps are those of an engine that tells everything.
const caps = event.CapStages | event.CapTokens | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue | event.CapHost

// introduce has the engine say what it is and what it has loaded.
func (p *play) introduce(name, model string) {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{
		Name: name, Version: "1.2", Caps: caps, Slots: 2, State: event.EngineReady, Device: event.Device{Name: "CPU", Kernels: "avx2", Host: true},
		Remote: event.Remote{Link: event.LinkConnected, Restarts: 1},
	}})
	p.emit(0, event.Event{Kind: event.KindModel, Dur: 5 * ms, Data: &event.Model{
		Name: model, Architecture: "moe", Quantisation: "Q8_0", Parameters: 1000, Bytes: 2000, WeightBytes: 100, KVBytes: 8,
	}})
}

// request runs one through all its stages: a prompt of 10 tokens, n more.
func (p *play) request(id event.RequestID, r event.Request, n int) {
	p.state(0, id, event.StateQueued, &r)
	p.state(2*ms, id, event.StateDispatched, nil)
	p.stage(id, event.StageQueue, 0, 0)
	p.stage(id, event.StageTokenize, 100*us, 10)
	p.stage(id, event.StagePrompt, 3*ms, 10)
	p.emit(0, event.Event{Kind: event.KindStep, Dur: 3 * ms, Prompt: 10})
	p.stage(id, event.StageFirst, 400*us, 1)
	p.token(0, id, 1)
	for range n - 1 {
		p.emit(ms, event.Event{Kind: event.KindStep, Dur: ms, N: 1})
		p.token(0, id, 1)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Reason: "stop", Prompt: 10, Cached: 4, Generated: n})
}

// everything has an engine tell all that there is to tell.
func (p *play) everything() {
	p.introduce("native", "tiny")
	p.request(1, event.Request{Cold: true}, 4)
	p.request(2, event.Request{Group: "tenant"}, 20)
	p.emit(0, routed(picks(2, 4, 7)))
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 30, Total: 120}})
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: sec, Cores: []float64{.25, .5}, CPU: event.Of(.375), Frequency: event.Of(3e9), Load1: event.Of(1.5),
		MemTotal: event.Of(8e9), MemUsed: event.Of(2e9), CPULimit: event.Of(2), CopyBandwidth: event.Of(1e10),
		Engine: process(11), Self: process(12),
		GPUs: []event.GPU{{
			Name: "H200", Util: event.Of(.5), MemUsed: event.Of(1e9), MemTotal: event.Of(2e9), Power: event.Of(300),
			Temperature: event.Of(60), Clock: event.Of(1.9e9),
		}},
	}})
	p.emit(0, event.Event{Kind: event.KindLost, Data: &event.Lost{event.KindToken: 3}})
}

// sums has a server tell of itself in sum.
func (p *play) sums() {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "vLLM", Caps: event.CapReports, State: event.EngineReady}})
	p.emit(sec, event.Event{Kind: event.KindReport, Data: &event.Report{
		Interval: sec, Running: event.Reading{V: 7, Origin: event.Reported}, Decode: event.From(900),
		Times: []event.Times{
			{Name: event.TimesTTFT, Count: 7, Sum: 2 * sec, Bounds: []int64{sec / 10, sec}, Counts: []uint64{4, 2, 1}},
			{Name: event.TimesQueue, Count: 7, Sum: sec},
		},
	}})
	p.request(1<<50, event.Request{Probe: true}, 4)
}

func process(pid int) event.Process {
	return event.Process{
		PID: pid, CPU: event.Of(1.5), RunWait: event.Of(.1), RSS: event.Of(1e8), Peak: event.Of(2e8), ReadOps: event.Of(5), WriteOps: event.Of(6),
		ReadSum: event.Of(4096), WriteSum: event.Of(8192), Faults: event.Of(0), Threads: event.Of(9),
	}
}

// picks are counts that differ from cell to cell: their place, times a factor.
func picks(layers, experts int, factor uint64) *event.Experts {
	e := &event.Experts{
		Layers: layers, Experts: experts, Used: 1, PromptTokens: factor, DecodeTokens: factor,
		Prompt: make([]uint64, layers*experts), Decode: make([]uint64, layers*experts),
	}
	for i := range e.Prompt {
		e.Prompt[i], e.Decode[i] = factor*uint64(i), 2*factor*uint64(i)
	}
	return e
}

// routed is the event that tells picks.
func routed(e *event.Experts) event.Event { return event.Event{Kind: event.KindExperts, Data: e} }

// text is what an exporter tells in a format.
func text(t testing.TB, x *Exporter, as expfmt.FormatType) string {
	t.Helper()
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	enc := expfmt.NewEncoder(&out, expfmt.NewFormat(as))
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if c, ok := enc.(expfmt.Closer); ok {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
