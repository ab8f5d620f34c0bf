// Package viewtest helps to test views: it plays sessions into a store, stands in for the program around a view, and
// compares frames with golden files. Only tests import it.
package viewtest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Scene emits a scripted session into a real store with its own clock.
type Scene struct {
	Store *store.Store
	Now   event.Time
	Slots int // of the engine

	rng        *rand.Rand
	machineRng *rand.Rand // random source of the machine samples
	steps      uint64

	layers, experts, used int
	promptPicks, decPicks []uint64
	promptTok, decTok     uint64
	bias                  [][]float64
	biasSum               []float64
	withPicks             bool // tokens carry their router picks

	sampled   event.Time // time of the last machine sample
	stalled   bool       // a token was late since then
	inspected bool       // the next sample includes PSS and page cache
}

// Millisecond is one millisecond of a scene's clock.
const Millisecond = event.Time(time.Millisecond)

// NewScene makes a scene whose requests are checked against a TTFT of 200 ms.
func NewScene() *Scene { return NewSceneWithTargets(store.Targets{TTFT: 200 * time.Millisecond}) }

// NewSceneWithTargets makes a scene whose requests are checked against targets.
func NewSceneWithTargets(targets store.Targets) *Scene {
	s := &Scene{rng: rand.New(rand.NewPCG(7, 11)), machineRng: rand.New(rand.NewPCG(5, 3)), Slots: 1}
	wall := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.Store = store.New(store.Options{
		Now:     func() event.Time { return s.Now },
		Wall:    func() time.Time { return wall.Add(time.Duration(s.Now)) },
		Targets: targets, Past: store.NewPastBudget(store.MaxPastBytes),
	})
	return s
}

// Emit emits an event now.
func (s *Scene) Emit(e event.Event) {
	e.At = s.Now
	s.Store.Emit(e)
}

// Snapshot has the store process the emitted events and returns the snapshot.
func (s *Scene) Snapshot() *store.Snapshot { return s.Store.Snapshot() }

// Engine emits the state of the engine.
func (s *Scene) Engine(state event.EngineState, reason string) {
	s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "native", Version: "0.1", PID: 4242, State: state, Reason: reason, Slots: s.Slots, Pace: 40,
		Device: event.Device{Name: "CPU", Kernels: "avx512-vnni", Host: true, Threads: 2},
		Caps: event.CapStages | event.CapTokens | event.CapText | event.CapExperts | event.CapKV | event.CapSteps |
			event.CapQueue | event.CapPrompt | event.CapOps,
	}})
}

// Stage plays a stage of a request; n is its number of tokens.
func (s *Scene) Stage(req event.RequestID, st event.Stage, dur time.Duration, n int) {
	s.Now += event.Time(dur)
	s.Emit(event.Event{Kind: event.KindStage, Stage: st, Req: req, Layer: -1, Dur: int64(dur), N: int32(n)})
}

// Load loads a model, stage by stage, up to stop.
func (s *Scene) Load(stop event.Stage) {
	s.Engine(event.EngineLoading, "")
	for _, p := range []struct {
		st  event.Stage
		dur time.Duration
	}{
		{event.StageLoadOpen, 140 * time.Microsecond},
		{event.StageLoadMap, 310 * time.Microsecond},
		{event.StageLoadTokenizer, 6200 * time.Microsecond},
		{event.StageLoadWeights, 18400 * time.Microsecond},
		{event.StageLoadWarmup, 9100 * time.Microsecond},
	} {
		s.Stage(0, p.st, p.dur, 0)
		if p.st == stop {
			return
		}
	}
}

// Model announces a model of the given shape; experts 0: a dense one.
func (s *Scene) Model(name string, layers, experts, used int) {
	s.layers, s.experts, s.used = layers, experts, used
	s.Emit(event.Event{Kind: event.KindModel, Dur: int64(34 * time.Millisecond), Data: &event.Model{
		Name: name, Path: "(built in)", Architecture: "qwen3moe", Quantisation: "Q8_0", Parameters: 11_010_048,
		Active: 3_900_000, Bytes: 11_800_000, Layers: layers, Width: 192, Heads: 6, KVHeads: 2, HeadDim: 32, Vocab: 4096,
		Experts: experts, ExpertsUsed: used, FeedForward: 128, Context: 1024, TrainContext: 1024, KVBytes: 4096,
		WeightBytes: 4_200_000,
	}})
	s.promptPicks, s.decPicks = make([]uint64, layers*experts), make([]uint64, layers*experts)
	s.bias = make([][]float64, layers)
	s.biasSum = make([]float64, layers)
	for l := range s.bias {
		s.bias[l] = make([]float64, experts)
		for e := range s.bias[l] {
			s.bias[l][e] = math.Exp(s.rng.NormFloat64() * (0.5 + 1.2*float64(l)/float64(layers)))
			s.biasSum[l] += s.bias[l][e]
		}
	}
	s.Engine(event.EngineReady, "")
}

// route draws the picks of n tokens and adds them to picks.
func (s *Scene) route(picks []uint64, n int) {
	for l := range s.layers {
		for range n * s.used {
			picks[l*s.experts+s.pick(l)]++
		}
	}
}

// pick draws an expert of a layer by its bias.
func (s *Scene) pick(l int) (e int) {
	at := s.rng.Float64() * s.biasSum[l]
	for ; e < s.experts-1 && at > s.bias[l][e]; e++ {
		at -= s.bias[l][e]
	}
	return e
}

// DecodePicks emits the router picks of a number of decoded tokens, as the only ones so far.
func (s *Scene) DecodePicks(tokens uint64, picks ...uint64) {
	clear(s.promptPicks)
	copy(s.decPicks, picks)
	s.promptTok, s.decTok = 0, tokens
	s.ReportExperts()
}

// ReportExperts emits the router picks so far.
func (s *Scene) ReportExperts() {
	if s.experts == 0 {
		return
	}
	s.Emit(event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: s.layers, Experts: s.experts, Used: s.used, Prompt: append([]uint64(nil), s.promptPicks...),
		Decode: append([]uint64(nil), s.decPicks...), PromptTokens: s.promptTok, DecodeTokens: s.decTok,
	}})
}

// Host emits a machine sample.
func (s *Scene) Host() { s.sample(s.rng.Float64() * 0.04) }

// sample emits a machine sample with a CPU load of 0.9 plus j. Run wait and pressure are high if a token was late since
// the last sample.
func (s *Scene) sample(j float64) {
	vary := func(v float64) event.Reading { return event.MeasuredValue(v * (0.9 + 0.2*s.machineRng.Float64())) }
	wait := 0.0
	if s.stalled {
		wait = 0.2 + 0.15*s.machineRng.Float64()
	}
	interval := time.Second
	if s.sampled > 0 {
		interval = time.Duration(s.Now - s.sampled)
	}
	s.sampled, s.stalled = s.Now, false
	h := &event.Host{
		Interval: int64(interval), Cores: []float64{0.93 + j, 0.88 + j}, CPU: event.MeasuredValue(0.9 + j), Frequency: event.MeasuredValue(2.9e9),
		Clocks: []float64{2.8e9, 3.0e9}, Load1: event.MeasuredValue(1.62), MemTotal: event.MeasuredValue(24e9), MemUsed: event.MeasuredValue(3.1e9), ReadBandwidth: []float64{11.4e9, 18.2e9},
		CPULimit: event.Absent(event.Undefined), NoGPU: "no GPU", Power: event.Absent(event.NotPermitted),
		CPUPressure: vary(0.01 + wait), MemPressure: event.MeasuredValue(0), IOPressure: event.MeasuredValue(0.002), Received: vary(12e3), Sent: vary(31e3),
		Engine: event.Process{
			PID: 4242, CPU: event.MeasuredValue(1.84 + j), RunWait: event.MeasuredValue(0.021 + wait), RSS: event.MeasuredValue(83.6e6), Peak: event.MeasuredValue(91.2e6),
			Read: event.MeasuredValue(0), Write: event.MeasuredValue(4096), ReadOps: event.MeasuredValue(0), WriteOps: event.MeasuredValue(1), Faults: event.MeasuredValue(0),
			Threads: event.MeasuredValue(11), MinorFaults: vary(21), Voluntary: vary(4200), Involuntary: vary(12 + 900*wait),
		},
		Self: event.Process{
			PID: 4242, CPU: event.MeasuredValue(1.84), RSS: event.MeasuredValue(83.6e6), OutsideEngine: event.MeasuredValue(0.011 + j/20), GCPause: event.MeasuredValue(41_000),
			GCCount: event.MeasuredValue(1),
		},
	}
	if s.inspected {
		h.ModelBytes, h.ModelCached, h.Engine.PSS = event.MeasuredValue(18.6e9), event.MeasuredValue(17.1e9), event.MeasuredValue(79.9e6)
		s.inspected = false
	}
	s.Emit(event.Event{Kind: event.KindHost, Data: h})
}

// Request plays one request from its queueing to the given number of tokens, and finishes it if it reached its limit.
func (s *Scene) Request(id event.RequestID, label, prompt, answer string, tokens, limit int, cold bool) {
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{
		Label: label, Prompt: prompt, MaxTokens: limit, Cold: cold,
	}})
	s.Stage(id, event.StageQueue, 180*time.Microsecond, 0)
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	n := 9 + len(prompt)/3
	jitter := 0.8 + 0.5*s.rng.Float64()
	s.Stage(id, event.StageTokenize, time.Duration(float64(n)*4e3*jitter), n)
	s.Stage(id, event.StageEmbed, time.Duration(float64(n)*3e3), n)
	prefill := time.Duration(float64(n) * 230e3 * jitter)
	s.Stage(id, event.StagePrompt, prefill, n)
	s.layersOf(id, prefill)
	s.steps++
	s.Emit(event.Event{Kind: event.KindStep, Step: s.steps, Dur: int64(prefill), Prompt: int32(n)})
	s.route(s.promptPicks, n)
	s.promptTok += uint64(n)
	s.Stage(id, event.StageFirst, time.Duration(1.9e6*jitter), 1)
	s.Now += Millisecond / 4
	words := SplitWords(answer)
	for i := range tokens {
		if i > 0 {
			s.Pass(id, i)
		}
		var picks []uint16
		if s.withPicks {
			picks = s.pickFor(label)
		}
		s.Emit(event.Event{
			Kind: event.KindToken, Req: id, ID: int32(i), Index: int32(i), N: 1, Step: s.steps, Text: words[i%len(words)], Picks: picks,
			Split: event.Split{Embed: 900, Attention: 171_000, Router: 12_000, Experts: 336_000, Head: 61_000, Sample: 7_000},
		})
		s.Emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(n + i), Total: 1024}})
	}
	s.ReportExperts()
	if tokens >= limit {
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{
			Reason: "length", Prompt: n, Generated: tokens,
		}})
		s.Emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: 0, Total: 1024, Freed: int64(n + tokens), Residency: int64(tokens) * 25e6}})
	}
	s.Snapshot()
}

// layersOf emits the stages of each layer for the prompt; later layers take slightly longer.
func (s *Scene) layersOf(id event.RequestID, whole time.Duration) {
	shares := [...]struct {
		stage event.Stage
		share float64
	}{{event.StageAttention, 0.35}, {event.StageRouter, 0.05}, {event.StageExperts, 0.6}}
	for l := range s.layers {
		part := float64(whole) / float64(s.layers) * (0.9 + 0.2*float64(l)/float64(s.layers))
		for _, p := range shares {
			s.Emit(event.Event{Kind: event.KindStage, Stage: p.stage, Req: id, Layer: int16(l), Dur: int64(part * p.share)})
		}
	}
}

// Pass plays one decode step of a request with its pacing; now and then one takes much longer.
func (s *Scene) Pass(id event.RequestID, i int) {
	dur := time.Duration(620e3 * (0.85 + 0.3*s.rng.Float64()))
	if s.rng.IntN(97) == 0 {
		dur *= 4
		s.stalled = true
	}
	before := int64(s.Now) / int64(time.Second)
	pace := 25*time.Millisecond - dur
	s.Stage(id, event.StagePace, pace, 0)
	s.Now += event.Time(dur)
	s.Step(dur)
	if int64(s.Now)/int64(time.Second) != before {
		s.Host()
		s.ReportExperts()
		s.Snapshot()
	}
}

// Step emits the end of a decode step that took dur, and counts the router picks of its token.
func (s *Scene) Step(dur time.Duration) {
	s.steps++
	s.route(s.decPicks, 1)
	s.decTok++
	s.Emit(event.Event{Kind: event.KindStep, Step: s.steps, Dur: int64(dur), N: 1})
}

// Token emits a token of a request.
func (s *Scene) Token(id event.RequestID, i int, text string) {
	s.Emit(event.Event{Kind: event.KindToken, Req: id, ID: int32(i), Index: int32(i), N: 1, Step: s.steps, Text: text})
}

// SplitWords splits text into tokens: words with the space before them.
func SplitWords(text string) (out []string) {
	start := 0
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' {
			out = append(out, text[start:i])
			start = i
		}
	}
	return append(out, text[start:])
}

// The prompt and the answer of most requests.
const (
	PromptText = "In the beginning God created the heaven and the earth."
	AnswerText = " And the earth was without form, and void; and darkness was upon the face of the deep. And the spirit moved upon" +
		" the face of the waters, and there was light: and he saw the light, that it was good, and divided the light from the" +
		" darkness. And the evening and the morning were the first day."
)

// Operations emits operation times of a model of the given shape.
func (s *Scene) Operations(kinds []string, slowdown event.Reading) {
	const passes = 420
	o := &event.Ops{Passes: passes, Slowdown: slowdown}
	for layer := -1; layer < s.layers; layer++ {
		for k, kind := range kinds {
			took := int64(1+k*k) * int64(200+s.rng.IntN(100)) * passes * 20 / int64(len(kinds)+1)
			o.Times = append(o.Times, event.OpTime{Op: kind, Layer: layer, Calls: int64(passes * (1 + k%4)), Dur: took})
		}
	}
	slices.SortFunc(o.Times, func(a, b event.OpTime) int { return cmp.Compare(b.Dur, a.Dur) })
	s.Emit(event.Event{Kind: event.KindOps, Data: o})
}

// opKinds are operation types of llama.cpp.
var opKinds = []string{"CPY", "SET_ROWS", "ROPE", "GLU", "ADD", "ARGSORT", "SOFT_MAX", "RMS_NORM", "MUL", "FLASH_ATTN_EXT", "MUL_MAT", "MUL_MAT_ID"}
