package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

const ms = int64(time.Millisecond)

// run is a session played into a store that keeps all requests, with a manual clock.
type run struct {
	now   event.Time
	store *store.Store
}

func newRun() *run { return runKeeping(store.DefaultKeep) }

// runKeeping returns a run whose store keeps bytes of tokens.
func runKeeping(bytes int) *run {
	r := &run{}
	r.store = store.New(store.Options{
		Now:  func() event.Time { return r.now },
		Wall: func() time.Time { return time.Unix(1_700_000_000, int64(r.now)) },
		Keep: bytes,
	})
	return r
}

// emit waits, then sends an event.
func (r *run) emit(wait int64, e event.Event) {
	r.now += event.Time(wait)
	e.At = r.now
	r.store.Emit(e)
}

func (r *run) stage(req event.RequestID, s event.Stage, layer int16, dur int64, n int32) {
	r.emit(dur, event.Event{Kind: event.KindStage, Stage: s, Req: req, Layer: layer, Dur: dur, N: n})
}

func (r *run) build(meta Meta) *Report { return Build(meta, r.store.Snapshot()) }

// load introduces an engine and loads a model in 40 ms.
func (r *run) load() {
	caps := event.CapStages | event.CapTokens | event.CapText | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue
	r.emit(1*ms, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "native", Version: "1", Caps: caps, Slots: 2, State: event.EngineReady,
		Device: event.Device{Name: "CPU", Kernels: "avx2", Host: true, Threads: 2},
	}})
	r.stage(0, event.StageLoadOpen, -1, 10*ms, 0)
	r.stage(0, event.StageLoadMap, -1, 30*ms, 0)
	r.emit(0, event.Event{Kind: event.KindStage, Stage: event.StageLoad, Layer: -1, Dur: 40 * ms})
	r.emit(0, event.Event{Kind: event.KindModel, Dur: 40 * ms, Data: &event.Model{
		Name: "demo\x1b[31m", Architecture: "qwen3moe", Quantisation: "Q8_0", Parameters: 11_000_000, Bytes: 12_000_000,
		Layers: 2, Experts: 4, ExpertsUsed: 1, WeightBytes: 5_000_000, KVBytes: 512,
	}})
}

// request plays a whole request: queue 2 ms, tokenize 1 ms, embed 1 ms, prompt 12 ms in two layers, first token 2 ms,
// and 1 ms without a stage. The TTFT is 19 ms plus, if it is cold, the load. Then n-1 tokens follow with gaps of 5 ms
// and pacing of 3 ms.
func (r *run) request(id event.RequestID, info event.Request, n int) {
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &info})
	r.stage(id, event.StageQueue, -1, 2*ms, 0)
	r.emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	r.stage(id, event.StageTokenize, -1, 1*ms, 8)
	r.stage(id, event.StageEmbed, -1, 1*ms, 8)
	for layer := range int16(2) {
		r.stage(id, event.StageAttention, layer, 3*ms, 8)
		r.stage(id, event.StageRouter, layer, 1*ms, 8)
		r.stage(id, event.StageExperts, layer, 2*ms, 8)
	}
	r.emit(0, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: id, Layer: -1, Dur: 12 * ms, N: 8})
	r.stage(id, event.StageFirst, -1, 2*ms, 1)
	r.now += event.Time(ms)
	for i := range n {
		if i > 0 {
			r.stage(id, event.StagePace, -1, 3*ms, 1)
			r.now += event.Time(5 * ms)
		}
		r.emit(0, event.Event{
			Kind: event.KindToken, Req: id, ID: int32(100 + i), Index: int32(i), N: 1, Text: "w\x1b ", LogP: -0.5, HasLogP: true, Handover: 1_500_000,
			Top: []event.TopProb{{ID: int32(100 + i), LogP: -0.5, Text: "w"}, {ID: 7, LogP: float32(math.Inf(-1)), Text: "\xff"}},
		})
	}
	r.emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{
		Reason: "length", Prompt: 8, Cached: 2, Generated: n,
	}})
}

// surroundings emits everything except requests.
func (r *run) surroundings() {
	r.emit(ms, event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: 2, Experts: 4, Used: 1, Decode: []uint64{6, 1, 1, 0, 2, 2, 2, 2}, Prompt: make([]uint64, 8), DecodeTokens: 8,
	}})
	r.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 10, Total: 100, Freed: 5, Residency: 20 * ms}})
	r.emit(0, event.Event{Kind: event.KindStep, N: 2, Dur: 5 * ms})
	process := event.Process{
		PID: 42, CPU: event.MeasuredValue(1.5), RSS: event.MeasuredValue(60e6), Peak: event.MeasuredValue(70e6),
		Read: event.Absent(event.NotPermitted), ReadSum: event.Absent(event.NotPermitted), WriteSum: event.MeasuredValue(4096), WriteOps: event.MeasuredValue(2),
	}
	r.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: 1e9, Cores: []float64{0.5, math.NaN()}, CPU: event.MeasuredValue(0.75), MemTotal: event.MeasuredValue(8e9), MemUsed: event.MeasuredValue(math.Inf(1)),
		Engine: process, Self: process, GPUs: []event.GPU{{Name: "card\a", Util: event.MeasuredValue(0.1)}},
	}})
	r.emit(0, event.Event{Kind: event.KindLog, Text: "a line"})
	drops := event.Drops{event.KindToken: 3}
	r.emit(0, event.Event{Kind: event.KindDrops, Data: &drops})
}

// wholeRun returns a session with requests of all kinds.
func wholeRun() *run {
	r := newRun()
	r.load()
	r.request(1, event.Request{Label: "scripture", Cold: true}, 4)
	r.request(2, event.Request{Label: "vers\x9be", Group: "adapter\n"}, 6)
	r.request(3, event.Request{}, 1)
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 4, State: event.StateQueued})
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 4, State: event.StateCancelled, Data: &event.Outcome{Reason: "cancelled"}})
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 5, State: event.StateQueued})
	r.surroundings()
	r.now += event.Time(2 * time.Second)
	return r
}

// TestCellsWithoutTotal reports the cells in use of an engine that does not say how many there are.
func TestCellsWithoutTotal(t *testing.T) {
	r := newRun()
	r.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 10}})
	got := r.build(Meta{}).KV
	if got.Used.V != 10 || got.Total.OK() || got.Usage.OK() {
		t.Errorf("used %v, total %v, usage %v", got.Used, got.Total, got.Usage)
	}
	if text := got.describe(); !strings.HasPrefix(text, "10 cells in use;") {
		t.Errorf("text %q", text)
	}
}
