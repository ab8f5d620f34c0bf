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

// scenario is an engine with a store, an exporter and a manual clock.
type scenario struct {
	now    event.Time
	store  *store.Store
	engine *EngineExporter
	sink   event.Tee
}

// addEngine adds an engine to an exporter.
func addEngine(x *Exporter, name string) *scenario {
	p := &scenario{now: event.Time(sec)}
	clock := func() event.Time { return p.now }
	p.engine = x.Add(name, clock)
	p.store = store.New(store.Options{Now: clock, OnRequest: p.engine.Request, OnGaps: p.engine.Gaps})
	p.engine.Watch(p.store.Snapshot)
	p.sink = event.Tee{p.store, p.engine}
	return p
}

// emit sends an event after a wait in ns.
func (p *scenario) emit(wait int64, e event.Event) {
	p.now += event.Time(wait)
	e.At = p.now
	p.sink.Emit(e)
}

func (p *scenario) state(wait int64, id event.RequestID, s event.State, data any) {
	p.emit(wait, event.Event{Kind: event.KindRequest, Req: id, State: s, Data: data})
}

func (p *scenario) stage(id event.RequestID, s event.Stage, dur int64, n int32) {
	p.emit(dur, event.Event{Kind: event.KindStage, Stage: s, Req: id, Layer: -1, Dur: dur, N: n})
}

func (p *scenario) token(wait int64, id event.RequestID, n int32) {
	p.emit(wait, event.Event{Kind: event.KindToken, Req: id, N: n})
}

// caps are the capabilities of an engine that reports everything.
const caps = event.CapStages | event.CapTokens | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue | event.CapHost

// introduce emits the engine and its model.
func (p *scenario) introduce(name, model string) {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: name, Provider: name, Version: "1.2", Caps: caps, Slots: 2, State: event.EngineReady, Device: event.Device{Name: "CPU", Kernels: "avx2", Host: true},
		Remote: event.Remote{Link: event.LinkConnected, Restarts: 1},
	}})
	p.emit(0, event.Event{Kind: event.KindModel, Dur: 5 * ms, Data: &event.Model{
		Name: model, Architecture: "moe", Quantisation: "Q8_0", Parameters: 1000, Bytes: 2000, WeightBytes: 100, KVBytes: 8, Layers: 2, Experts: 4, ExpertsUsed: 1,
	}})
}

// request plays a request through all its stages: a prompt of 10 tokens, n generated tokens.
func (p *scenario) request(id event.RequestID, r event.Request, n int) {
	p.state(0, id, event.StateQueued, &r)
	p.state(2*ms, id, event.StateDispatched, nil)
	p.stage(id, event.StageQueue, 0, 0)
	p.stage(id, event.StageTokenize, 100*us, 10)
	p.stage(id, event.StagePrompt, 3*ms, 10)
	calls := new(event.Calls)
	for _, r := range calls.Readings() {
		*r = event.MeasuredValue(1e6)
	}
	p.emit(0, event.Event{Kind: event.KindStep, Dur: 3 * ms, Prompt: 10})
	p.stage(id, event.StageFirst, 400*us, 1)
	first := event.Event{Kind: event.KindToken, Req: id, N: 1}
	if r.Group == "tenant" {
		first.Reasoning = 1
	}
	p.emit(0, first)
	for range n - 1 {
		p.emit(ms, event.Event{Kind: event.KindStep, Dur: ms, N: 1, Data: calls})
		p.token(0, id, 1)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Reason: "stop", Prompt: 10, Cached: 4, Generated: n})
}

// emitEverything emits every kind of event that is exported.
func (p *scenario) emitEverything() {
	p.introduce("native", "tiny")
	p.request(1, event.Request{Cold: true}, 4)
	p.request(2, event.Request{Group: "tenant"}, 20)
	p.emit(0, routed(picks(2, 4, 7)))
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 30, Total: 120}})
	h := &event.Host{
		Interval: sec, Cores: []float64{.25, .5}, ReadBandwidth: []float64{1e9, 2e9}, Engine: event.Process{PID: 11}, Self: event.Process{PID: 12}, GPUs: []event.GPU{{Name: "H200"}},
	}
	fill(event.MachineFields[:], h)
	fill(event.ProcessFields[:], &h.Engine)
	fill(event.ProcessFields[:], &h.Self)
	fill(event.GPUFields[:], &h.GPUs[0])
	p.emit(0, event.Event{Kind: event.KindHost, Data: h})
	p.emit(0, event.Event{Kind: event.KindSpeculation, Data: &event.Speculation{
		DraftTime: 100 * ms, Drafted: []uint64{100}, Accepted: []uint64{80},
		Shapes: []event.PassShape{
			{Drafting: true, Requests: 1, Rows: 2, Passes: 100, Dur: 1100 * ms, Tokens: 180}, {Requests: 1, Rows: 1, Passes: 50, Dur: 500 * ms, Tokens: 50},
		},
	}})
	p.emit(0, event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 3}})
}

// emitAggregates emits the aggregate metrics of a server, and a probe.
func (p *scenario) emitAggregates() {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady}})
	p.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{
		Counts:      []event.NamedReading{{Name: event.CountPreemptions, Reading: event.DerivedValue(2)}},
		ExpertRanks: []event.LayerRanks{{Layer: 1, Picks: []uint64{30, 10}}},
		Interval:    sec, Running: event.Reading{V: 7, Origin: event.Reported}, Decode: event.DerivedValue(900),
		Histograms: []event.Histogram{
			{Name: event.HistogramTTFT, Count: 7, Sum: 2 * sec, Bounds: []int64{sec / 10, sec}, Counts: []uint64{4, 2, 1}},
			{Name: event.HistogramQueue, Count: 7, Sum: sec},
		},
	}})
	p.request(1<<50, event.Request{Probe: true}, 4)
}

// fill sets each reading of the catalogue to a number of its own.
func fill[T any](rows []event.Field[T], of *T) {
	for i := range rows {
		*rows[i].At(of) = event.MeasuredValue(float64(i + 1))
	}
}

// picks returns counts that differ in each cell: the cell's index times a factor.
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

// routed returns the event that reports picks.
func routed(e *event.Experts) event.Event { return event.Event{Kind: event.KindExperts, Data: e} }

// text returns all metrics in a format.
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
