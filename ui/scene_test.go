package ui

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// scene emits a scripted session into a real store with its own clock.
type scene struct {
	store      *store.Store
	now        event.Time
	rng        *rand.Rand
	machineRng *rand.Rand // random source of the machine samples
	step       uint64
	slots      int

	layers, experts, used int
	promptPicks, decPicks []uint64
	promptTok, decTok     uint64
	bias                  [][]float64
	withPicks             bool // tokens carry their router picks

	sampled   event.Time // time of the last machine sample
	stalled   bool       // a token was late since then
	inspected bool       // the next sample includes PSS and page cache
}

const ms = event.Time(time.Millisecond)

func newScene() *scene { return newSceneWithTargets(store.Targets{TTFT: 200 * time.Millisecond}) }

// newSceneWithTargets makes a scene whose requests are checked against targets.
func newSceneWithTargets(targets store.Targets) *scene {
	s := &scene{rng: rand.New(rand.NewPCG(7, 11)), machineRng: rand.New(rand.NewPCG(5, 3)), slots: 1}
	wall := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.store = store.New(store.Options{
		Now:     func() event.Time { return s.now },
		Wall:    func() time.Time { return wall.Add(time.Duration(s.now)) },
		Targets: targets, History: 1 << 20,
	})
	return s
}

func (s *scene) emit(e event.Event) {
	e.At = s.now
	s.store.Emit(e)
}

// drain has the store process the emitted events and returns the snapshot.
func (s *scene) drain() *store.Snapshot { return s.store.Snapshot() }

func (s *scene) engine(state event.EngineState, reason string) {
	s.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "native", Version: "0.1", PID: 4242, State: state, Reason: reason, Slots: s.slots, Pace: 40,
		Device: event.Device{Name: "CPU", Kernels: "avx512-vnni", Host: true, Threads: 2},
		Caps: event.CapStages | event.CapTokens | event.CapText | event.CapExperts | event.CapKV | event.CapSteps |
			event.CapQueue | event.CapPrompt | event.CapOps,
	}})
}

func (s *scene) stage(req event.RequestID, st event.Stage, dur time.Duration, n int) {
	s.now += event.Time(dur)
	s.emit(event.Event{Kind: event.KindStage, Stage: st, Req: req, Layer: -1, Dur: int64(dur), N: int32(n)})
}

// load loads a model, stage by stage, up to stop.
func (s *scene) load(stop event.Stage) {
	s.engine(event.EngineLoading, "")
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
		s.stage(0, p.st, p.dur, 0)
		if p.st == stop {
			return
		}
	}
}

// model announces a model of the given shape; experts 0: a dense one.
func (s *scene) model(name string, layers, experts, used int) {
	s.layers, s.experts, s.used = layers, experts, used
	s.emit(event.Event{Kind: event.KindModel, Dur: int64(34 * time.Millisecond), Data: &event.Model{
		Name: name, Path: "(built in)", Architecture: "qwen3moe", Quantisation: "Q8_0", Parameters: 11_010_048,
		Active: 3_900_000, Bytes: 11_800_000, Layers: layers, Width: 192, Heads: 6, KVHeads: 2, HeadDim: 32, Vocab: 4096,
		Experts: experts, ExpertsUsed: used, FeedForward: 128, Context: 1024, TrainContext: 1024, KVBytes: 4096,
		WeightBytes: 4_200_000,
	}})
	s.promptPicks, s.decPicks = make([]uint64, layers*experts), make([]uint64, layers*experts)
	s.bias = make([][]float64, layers)
	for l := range s.bias {
		s.bias[l] = make([]float64, experts)
		for e := range s.bias[l] {
			s.bias[l][e] = math.Exp(s.rng.NormFloat64() * (0.5 + 1.2*float64(l)/float64(layers)))
		}
	}
	s.engine(event.EngineReady, "")
}

// route draws the picks of n tokens and adds them to picks.
func (s *scene) route(picks []uint64, n int) {
	for l := range s.layers {
		sum := 0.0
		for _, b := range s.bias[l] {
			sum += b
		}
		for range n * s.used {
			at := s.rng.Float64() * sum
			e := 0
			for ; e < s.experts-1 && at > s.bias[l][e]; e++ {
				at -= s.bias[l][e]
			}
			picks[l*s.experts+e]++
		}
	}
}

func (s *scene) reportExperts() {
	if s.experts == 0 {
		return
	}
	s.emit(event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: s.layers, Experts: s.experts, Used: s.used, Prompt: append([]uint64(nil), s.promptPicks...),
		Decode: append([]uint64(nil), s.decPicks...), PromptTokens: s.promptTok, DecodeTokens: s.decTok,
	}})
}

// host emits a machine sample.
func (s *scene) host() { s.sample(s.rng.Float64() * 0.04) }

// sample emits a machine sample with a CPU load of 0.9 plus j. Run wait and pressure are high if a token was late since
// the last sample.
func (s *scene) sample(j float64) {
	vary := func(v float64) event.Reading { return event.MeasuredValue(v * (0.9 + 0.2*s.machineRng.Float64())) }
	wait := 0.0
	if s.stalled {
		wait = 0.2 + 0.15*s.machineRng.Float64()
	}
	interval := time.Second
	if s.sampled > 0 {
		interval = time.Duration(s.now - s.sampled)
	}
	s.sampled, s.stalled = s.now, false
	h := &event.Host{
		Interval: int64(interval), Cores: []float64{0.93 + j, 0.88 + j}, CPU: event.MeasuredValue(0.9 + j), Frequency: event.MeasuredValue(2.9e9),
		Clocks: []float64{2.8e9, 3.0e9}, Load1: event.MeasuredValue(1.62), MemTotal: event.MeasuredValue(24e9), MemUsed: event.MeasuredValue(3.1e9), CopyBandwidth: event.MeasuredValue(11.4e9),
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
	s.emit(event.Event{Kind: event.KindHost, Data: h})
}

// request plays one request from its queueing to the given number of tokens, and finishes it if it reached its limit.
func (s *scene) request(id event.RequestID, label, prompt, answer string, tokens, limit int, cold bool) {
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{
		Label: label, Prompt: prompt, MaxTokens: limit, Cold: cold,
	}})
	s.stage(id, event.StageQueue, 180*time.Microsecond, 0)
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	n := 9 + len(prompt)/3
	jitter := 0.8 + 0.5*s.rng.Float64()
	s.stage(id, event.StageTokenize, time.Duration(float64(n)*4e3*jitter), n)
	s.stage(id, event.StageEmbed, time.Duration(float64(n)*3e3), n)
	prefill := time.Duration(float64(n) * 230e3 * jitter)
	s.stage(id, event.StagePrompt, prefill, n)
	s.layersOf(id, prefill)
	s.step++
	s.emit(event.Event{Kind: event.KindStep, Step: s.step, Dur: int64(prefill), Prompt: int32(n)})
	s.route(s.promptPicks, n)
	s.promptTok += uint64(n)
	s.stage(id, event.StageFirst, time.Duration(1.9e6*jitter), 1)
	s.now += ms / 4
	words := splitWords(answer)
	for i := range tokens {
		if i > 0 {
			s.pass(id, i)
		}
		var picks []uint16
		if s.withPicks {
			picks = s.pickFor(label)
		}
		s.emit(event.Event{
			Kind: event.KindToken, Req: id, ID: int32(i), Index: int32(i), N: 1, Step: s.step, Text: words[i%len(words)], Picks: picks,
			Split: event.Split{Embed: 900, Attention: 171_000, Router: 12_000, Experts: 336_000, Head: 61_000, Sample: 7_000},
		})
		s.emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(n + i), Total: 1024}})
	}
	s.reportExperts()
	if tokens >= limit {
		s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{
			Reason: "length", Prompt: n, Generated: tokens,
		}})
		s.emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: 0, Total: 1024, Freed: int64(n + tokens), Residency: int64(tokens) * 25e6}})
	}
	s.drain()
}

// layersOf emits the stages of each layer for the prompt; later layers take slightly longer.
func (s *scene) layersOf(id event.RequestID, whole time.Duration) {
	shares := [...]struct {
		stage event.Stage
		share float64
	}{{event.StageAttention, 0.35}, {event.StageRouter, 0.05}, {event.StageExperts, 0.6}}
	for l := range s.layers {
		part := float64(whole) / float64(s.layers) * (0.9 + 0.2*float64(l)/float64(s.layers))
		for _, p := range shares {
			s.emit(event.Event{Kind: event.KindStage, Stage: p.stage, Req: id, Layer: int16(l), Dur: int64(part * p.share)})
		}
	}
}

// pass plays one decode step with its pacing; now and then one takes much longer.
func (s *scene) pass(id event.RequestID, i int) {
	dur := time.Duration(620e3 * (0.85 + 0.3*s.rng.Float64()))
	if s.rng.IntN(97) == 0 {
		dur *= 4
		s.stalled = true
	}
	before := int64(s.now) / int64(time.Second)
	pace := 25*time.Millisecond - dur
	s.stage(id, event.StagePace, pace, 0)
	s.now += event.Time(dur)
	s.step++
	s.route(s.decPicks, 1)
	s.decTok++
	s.emit(event.Event{Kind: event.KindStep, Step: s.step, Dur: int64(dur), N: 1})
	if int64(s.now)/int64(time.Second) != before {
		s.host()
		s.reportExperts()
		s.drain()
	}
}

// splitWords splits text into tokens: words with the space before them.
func splitWords(text string) (out []string) {
	start := 0
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' {
			out = append(out, text[start:i])
			start = i
		}
	}
	return append(out, text[start:])
}

const (
	promptText = "In the beginning God created the heaven and the earth."
	answerText = " And the earth was without form, and void; and darkness was upon the face of the deep. And the spirit moved upon" +
		" the face of the waters, and there was light: and he saw the light, that it was good, and divided the light from the" +
		" darkness. And the evening and the morning were the first day."
)

// live plays a session of over a minute: a cold request, some warm ones of each prompt kind, one running.
func live() *scene {
	s := newScene()
	s.load(event.StageNone)
	s.model("llmtop-demo-moe", 8, 16, 2)
	s.emit(event.Event{Kind: event.KindLog, Text: "mapped 312 tensors, 11.8 MB"})
	s.emit(event.Event{Kind: event.KindLog, Text: "kernels: avx512-vnni, 2 threads"})
	for i, kind := range []string{"scripture", "code", "recipe", "dialogue", "arithmetic", "scripture", "code"} {
		s.request(event.RequestID(i+1), kind, promptText[:20+i*5], answerText, 420, 420, i == 0)
		s.now += 2500 * ms
		s.host()
	}
	s.request(8, "scripture", promptText, answerText, 74, 420, false)
	s.now += 3 * ms
	return s
}

// loading plays a load until the weights are being prepared.
func loading() *scene {
	s := newScene()
	s.load(event.StageLoadTokenizer)
	s.now += 9 * ms
	return s
}

// ready has a model and no requests.
func ready() *scene {
	s := newScene()
	s.load(event.StageNone)
	s.model("llmtop-demo-moe", 8, 16, 2)
	s.host()
	s.now += 1200 * ms
	return s
}

// failed plays a load that fails.
func failed() *scene {
	s := newScene()
	s.load(event.StageLoadMap)
	s.emit(event.Event{Kind: event.KindLog, Text: "read tensor \x1b[31mblk.3.ffn_gate\x1b[0m: offset 9182736 is beyond the file"})
	s.engine(event.EngineFailed, "load model.gguf: tensor blk.3.ffn_gate: offset 9182736 is beyond the end of the file")
	s.now += 400 * ms
	return s
}

// dense has a model without experts, an engine that reports little, and dropped events.
func dense() *scene {
	s := newScene()
	s.load(event.StageNone)
	s.model("llama-tiny", 6, 0, 0)
	s.slots = 4
	s.request(1, "", promptText, answerText, 120, 400, false)
	s.emit(event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 1234}})
	return s
}

// silent is an attached engine that reports only requests.
func silent() *scene {
	s := newScene()
	s.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "other", State: event.EngineReady, Remote: event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkConnected},
	}})
	s.emit(event.Event{Kind: event.KindModel, Data: &event.Model{Name: "some-moe", Architecture: "mixtral", Experts: 8, ExpertsUsed: 2}})
	for id := range event.RequestID(2) {
		s.emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued, Data: &event.Request{MaxTokens: 40}})
		s.now += 700 * ms
	}
	s.emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 12, Generated: 30}})
	s.now += 300 * ms
	return s
}

// huge has a shape that does not fit a map cell by cell, and operation times whose profiling overhead is not measured
// yet.
func huge() *scene {
	s := newScene()
	s.load(event.StageNone)
	s.model("qwen3-235b-a22b", 94, 256, 8)
	s.request(1, "long", promptText, answerText, 60, 400, false)
	s.operations(opKinds, event.Absent(event.NotYet))
	return s
}

// operations emits operation times of a model of the given shape.
func (s *scene) operations(kinds []string, slowdown event.Reading) {
	const passes = 420
	o := &event.Ops{Passes: passes, Slowdown: slowdown}
	for layer := -1; layer < s.layers; layer++ {
		for k, kind := range kinds {
			took := int64(1+k*k) * int64(200+s.rng.IntN(100)) * passes * 20 / int64(len(kinds)+1)
			o.Times = append(o.Times, event.OpTime{Op: kind, Layer: layer, Calls: int64(passes * (1 + k%4)), Dur: took})
		}
	}
	slices.SortFunc(o.Times, func(a, b event.OpTime) int { return cmp.Compare(b.Dur, a.Dur) })
	s.emit(event.Event{Kind: event.KindOps, Data: o})
}

// opKinds are operation types of llama.cpp.
var opKinds = []string{"CPY", "SET_ROWS", "ROPE", "GLU", "ADD", "ARGSORT", "SOFT_MAX", "RMS_NORM", "MUL", "FLASH_ATTN_EXT", "MUL_MAT", "MUL_MAT_ID"}

// timed has operation times of a small model.
func timed() *scene {
	s := live()
	s.operations(opKinds, event.DerivedValue(2.4))
	return s
}

// hostile has external text in every place that would control a terminal or break the layout.
func hostile() *scene {
	const evil = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u009b5;5H\u202edlrow\u2066 \u200b日本語\u0301\u0302\u0303\u0304\t👩\u200d👩 \xff\xfe\r\n\x00\x7f" +
		"aVeryLongWordWithoutAnySpaceThatWillNotFitIntoAnyPaneOfTheOverviewAndMustBeBrokenSomewhere"
	s := newScene()
	s.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: evil, Version: evil, State: event.EngineReady, Reason: evil, Slots: 2, Device: event.Device{Name: evil, Kernels: evil},
		Caps: event.CapStages | event.CapTokens | event.CapText | event.CapKV | event.CapQueue,
	}})
	s.model(evil, 3, 8, 2)
	s.emit(event.Event{Kind: event.KindLog, Text: evil})
	s.emit(event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: int64(time.Second), Cores: make([]float64, 300), NoGPU: evil, GPUs: []event.GPU{{Name: evil, Util: event.MeasuredValue(math.Inf(1))}},
		CPU: event.MeasuredValue(math.NaN()), MemTotal: event.MeasuredValue(-1), Load1: event.MeasuredValue(math.MaxFloat64),
	}})
	s.request(1, evil, evil+evil, evil, 60, 60, true)
	s.request(2, evil, evil, evil, 9, 40, false)
	s.emit(event.Event{Kind: event.KindRequest, Req: 2, State: event.StateFailed, Data: &event.Outcome{Reason: evil}})
	s.request(3, "wide", "日本語", "日本語テキスト 한국어 한국어", 40, 80, false)
	s.operations([]string{evil, evil + evil, "", "日本語"}, event.DerivedValue(math.Inf(1)))
	s.emit(event.Event{Kind: event.KindRequest, Req: 4, State: event.StateQueued, Data: &event.Request{Label: evil, Group: evil, Prompt: evil}})
	return s
}
