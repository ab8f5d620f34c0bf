package viewtest

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Scenes are the states of a session.
var Scenes = []struct {
	Name string
	Make func() *Scene
}{
	{"empty", NewScene},
	{"loading", Loading},
	{"ready", Ready},
	{"failed", Failed},
	{"live", Live},
	{"idle", Idle},
	{"dense", Dense},
	{"silent", Silent},
	{"huge", Huge},
	{"hostile", Hostile},
}

// LiveSnapshot returns the final snapshot of the live session, made once.
var LiveSnapshot = sync.OnceValue(func() *store.Snapshot { return Live().Snapshot() })

// Live plays a session of over a minute: a cold request, some warm ones of each prompt kind, one running.
func Live() *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("llmtop-demo-moe", 8, 16, 2)
	s.Emit(event.Event{Kind: event.KindLog, Text: "mapped 312 tensors, 11.8 MB"})
	s.Emit(event.Event{Kind: event.KindLog, Text: "kernels: avx512-vnni, 2 threads"})
	for i, kind := range []string{"scripture", "code", "recipe", "dialogue", "arithmetic", "scripture", "code"} {
		s.Request(event.RequestID(i+1), kind, PromptText[:20+i*5], AnswerText, 420, 420, i == 0)
		s.Now += 2500 * Millisecond
		s.Host()
	}
	s.Request(8, "scripture", PromptText, AnswerText, 74, 420, false)
	s.Now += 3 * Millisecond
	return s
}

// Idle is the live session a minute after its last token.
func Idle() *Scene {
	s := Live()
	s.Outcome(8, event.StateFinished, "stop", 40, 74)
	for range 62 {
		s.Now += 1000 * Millisecond
		s.Host()
	}
	return s
}

// Loading plays a load until the weights are being prepared.
func Loading() *Scene {
	s := NewScene()
	s.Load(event.StageLoadTokenizer)
	s.Now += 9 * Millisecond
	return s
}

// Ready has a model and no requests.
func Ready() *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("llmtop-demo-moe", 8, 16, 2)
	s.Host()
	s.Now += 1200 * Millisecond
	return s
}

// Failed plays a load that fails.
func Failed() *Scene {
	s := NewScene()
	s.Load(event.StageLoadMap)
	s.Emit(event.Event{Kind: event.KindLog, Text: "read tensor \x1b[31mblk.3.ffn_gate\x1b[0m: offset 9182736 is beyond the file"})
	s.Engine(event.EngineFailed, "load model.gguf: tensor blk.3.ffn_gate: offset 9182736 is beyond the end of the file")
	s.Now += 400 * Millisecond
	return s
}

// Dense has a model without experts, an engine that reports little, and dropped events.
func Dense() *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("llama-tiny", 6, 0, 0)
	s.Slots = 4
	s.Request(1, "", PromptText, AnswerText, 120, 400, false)
	s.Emit(event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 1234}})
	return s
}

// Silent is an attached engine that reports only requests.
func Silent() *Scene {
	s := NewScene()
	s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "other", State: event.EngineReady, Remote: event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkConnected},
	}})
	s.Emit(event.Event{Kind: event.KindModel, Data: &event.Model{Name: "some-moe", Architecture: "mixtral", Experts: 8, ExpertsUsed: 2}})
	for id := range event.RequestID(2) {
		s.Emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued, Data: &event.Request{MaxTokens: 40}})
		s.Now += 700 * Millisecond
	}
	s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 12, Generated: 30}})
	s.Now += 300 * Millisecond
	return s
}

// Sparse is an attached engine with the least code of its own: requests, tokens and nothing else. llmtop samples its
// process.
func Sparse() *Scene {
	s := NewScene()
	s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "my-engine", State: event.EngineReady, Caps: event.CapTokens | event.CapStages | event.CapCounters,
		Remote: event.Remote{Address: "unix:/run/llmtop/my-engine.sock", Link: event.LinkConnected},
	}})
	s.Emit(event.Event{Kind: event.KindModel, Data: &event.Model{Name: "tiny"}})
	for id := range event.RequestID(9) {
		s.Emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued, Data: &event.Request{}})
		s.Now += 50*Millisecond + event.Time(id)*Millisecond
		for i := range 30 {
			s.Emit(event.Event{Kind: event.KindToken, Req: id + 1, ID: int32(i), Index: int32(i), N: 1})
			s.Now += 9 * Millisecond
		}
		if id < 8 {
			s.Emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateFinished, Data: &event.Outcome{Prompt: 40, Generated: 30}})
			s.Now += 500 * Millisecond
		}
		s.Host()
	}
	return s
}

// Huge has a shape that does not fit a map cell by cell, and operation times whose profiling overhead is not measured
// yet.
func Huge() *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("qwen3-235b-a22b", 94, 256, 8)
	s.Request(1, "long", PromptText, AnswerText, 60, 400, false)
	s.Operations(opKinds, event.Absent(event.NotYet))
	return s
}

// Timed has operation times of a small model.
func Timed() *Scene {
	s := Live()
	s.Operations(opKinds, event.DerivedValue(2.4))
	return s
}

// Hostile has external text in every place that would control a terminal or break the layout.
func Hostile() *Scene {
	const evil = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u009b5;5H\u202edlrow\u2066 \u200b日本語\u0301\u0302\u0303\u0304\t👩\u200d👩 \xff\xfe\r\n\x00\x7f" +
		"aVeryLongWordWithoutAnySpaceThatWillNotFitIntoAnyPaneOfTheOverviewAndMustBeBrokenSomewhere"
	s := NewScene()
	s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: evil, Version: evil, State: event.EngineReady, Reason: evil, Slots: 2, Device: event.Device{Name: evil, Kernels: evil},
		Caps: event.CapStages | event.CapTokens | event.CapText | event.CapKV | event.CapQueue,
	}})
	s.Model(evil, 3, 8, 2)
	s.Emit(event.Event{Kind: event.KindLog, Text: evil})
	s.Emit(event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: int64(time.Second), Cores: make([]float64, 300), NoGPU: evil, GPUs: []event.GPU{{Name: evil, Util: event.MeasuredValue(math.Inf(1))}},
		CPU: event.MeasuredValue(math.NaN()), MemTotal: event.MeasuredValue(-1), Load1: event.MeasuredValue(math.MaxFloat64),
	}})
	s.Request(1, evil, evil+evil, evil, 60, 60, true)
	s.Request(2, evil, evil, evil, 9, 40, false)
	s.Emit(event.Event{Kind: event.KindRequest, Req: 2, State: event.StateFailed, Data: &event.Outcome{Reason: evil}})
	s.Request(3, "wide", "日本語", "日本語テキスト 한국어 한국어", 40, 80, false)
	s.Operations([]string{evil, evil + evil, "", "日本語"}, event.DerivedValue(math.Inf(1)))
	s.Emit(event.Event{Kind: event.KindRequest, Req: 4, State: event.StateQueued, Data: &event.Request{Label: evil, Group: evil, Prompt: evil}})
	return s
}

// ColdRequests returns a session with a few cold requests and many warm ones.
func ColdRequests() *store.Snapshot {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("llmtop-demo-moe", 8, 16, 2)
	for i := range 24 {
		s.Request(event.RequestID(i+1), "code", PromptText[:10+i], AnswerText, 40, 40, i < 3)
	}
	s.Now += 1200 * Millisecond
	return s.Snapshot()
}

// MachineOfServer returns the machine of a server: many cores and two GPUs in a control group, and a model file.
func MachineOfServer() *store.Snapshot {
	s := *Crowd(5000)
	h := *s.Host.Host
	h.Cores, h.Clocks = nil, nil
	for i := range 48 {
		h.Cores, h.Clocks = append(h.Cores, float64(i*7%48)/48), append(h.Clocks, 2.1e9+float64(i%5)*2e8)
	}
	h.CPULimit, h.Throttled, h.Limited, h.MemTotal = event.MeasuredValue(16), event.MeasuredValue(0.12), true, event.MeasuredValue(64e9)
	h.Power, h.NoGPU = event.MeasuredValue(212), ""
	h.GPUs = []event.GPU{
		{Name: "NVIDIA H200", Util: event.MeasuredValue(.91), MemUsed: event.MeasuredValue(71e9), MemTotal: event.MeasuredValue(151e9), Power: event.MeasuredValue(580), Temperature: event.MeasuredValue(61), Clock: event.MeasuredValue(1.98e9)},
		{Name: "NVIDIA H200", Util: event.MeasuredValue(.13), MemUsed: event.MeasuredValue(4e9), MemTotal: event.MeasuredValue(151e9), Power: event.MeasuredValue(118), Temperature: event.MeasuredValue(38), Clock: event.MeasuredValue(345e6)},
	}
	for i := range h.GPUs { // the engine uses the first one, which is at its power limit
		g, first := &h.GPUs[i], float64(1-i)
		g.EngineUtil, g.EngineMem, g.PowerCapped = event.MeasuredValue(.9*first), event.MeasuredValue(70e9*first), event.MeasuredValue(first)
		g.PowerLimit, g.DRAM, g.PCIeIn = event.MeasuredValue(600), event.MeasuredValue(.71*first), event.MeasuredValue(1e6)
	}
	s.Host.Host = &h
	s.Host.Series = slices.Clone(s.Host.Series)
	for i := range s.Host.Series {
		v := &s.Host.Series[i].V
		v[event.GaugePower], v[event.GaugeThrottled], v[event.GaugeGPU] = 200+float64(i%9), .1+.002*float64(i%11), .5+.004*float64(i%7)
		v[event.GaugeGPUEngine], v[event.GaugeGPUDRAM], v[event.GaugePCIeIn], v[event.GaugePCIeOut] = .45, .3+.01*float64(i%5), 2e6, math.NaN()
		v[event.GaugeGPUMemory], v[event.GaugeGPUPower], v[event.GaugeGPUClock], v[event.GaugeGPUTemperature] = 75e9, 690+float64(i%13), 1.16e9, 61
	}
	s.Model.Path = "/models/qwen3-30b-a3b-q4_k_m.gguf"
	return &s
}
