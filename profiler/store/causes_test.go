package store

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestReplaysNameTheSameCauses checks that causes depend on the events only, not on when somebody looked: a replay of
// the same events names the same.
func TestReplaysNameTheSameCauses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		live, replay := newSession(), newSession()
		emit := func(wait int64, e event.Event) { live.emit(wait, e); replay.emit(wait, e) }
		for id := event.RequestID(1); id <= 2; id++ {
			emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{}})
			emit(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
		}
		for range rapid.IntRange(20, 120).Draw(r, "events") {
			wait := rapid.Int64Range(0, 40*ms).Draw(r, "wait")
			reading := func(of string) event.Reading { return event.MeasuredValue(rapid.Float64Range(0, 9e7).Draw(r, of)) }
			switch rapid.IntRange(0, 5).Draw(r, "kind") {
			case 0:
				emit(wait, event.Event{Kind: event.KindStep, Dur: wait, N: 1, Prompt: int32(rapid.IntRange(0, 64).Draw(r, "prompt"))})
			case 1:
				emit(wait, event.Event{Kind: event.KindUsage, Data: &event.Usage{
					Interval: 30 * ms, Running: reading("run"), Waiting: reading("wait"), Stopped: reading("stopped"), Throttled: reading("throttled"),
				}})
			case 2:
				emit(wait, event.Event{Kind: event.KindHost, Data: &event.Host{
					Interval: sec, Cores: []float64{1, 1}, CPU: event.MeasuredValue(.9), Engine: event.Process{CPU: event.MeasuredValue(.5), RunWait: event.MeasuredValue(.4)},
				}})
			default:
				emit(wait, event.Event{Kind: event.KindToken, Req: event.RequestID(rapid.IntRange(1, 2).Draw(r, "request")), N: 1})
			}
			live.store.Snapshot()
		}
		a, b := live.store.Snapshot(), replay.store.Snapshot()
		if d := cmp.Diff(a.Losses, b.Losses) + cmp.Diff(a.Latency.Stalls, b.Latency.Stalls); d != "" {
			r.Fatal(d)
		}
		if l := &a.Losses.Windows[metric.Session]; l.Total() < a.Losses.Stalls[metric.Session].Total() {
			r.Fatalf("stalls lost %d of %d ns", a.Losses.Stalls[metric.Session].Total(), l.Total())
		}
	})
}

// TestSlowSeconds plays seconds of 100 tokens/s without a stall.
func TestSlowSeconds(t *testing.T) {
	for _, c := range []struct {
		name  string
		gap   int64
		tpot  time.Duration // target; 0: none
		usage event.Usage   // of each 100 ms
		want  verdict.Cause
		n     bool
	}{
		{"fast", 10 * ms, 0, event.Usage{Running: readingMS(190), Waiting: readingMS(8)}, verdict.Unknown, false},
		{"waiting for cores", 10 * ms, 0, event.Usage{Running: readingMS(80), Waiting: readingMS(80)}, verdict.OtherProcesses, true},
		{"paced, with little to wait for", 10 * ms, 0, event.Usage{Running: readingMS(5), Waiting: readingMS(5)}, verdict.Unknown, false},
		{"slow for no reason", 100 * ms, 0, event.Usage{Running: readingMS(190), Waiting: readingMS(0)}, verdict.Unknown, true},
		{"slow within the target", 100 * ms, 150 * time.Millisecond, event.Usage{Running: readingMS(190), Waiting: readingMS(0)}, verdict.Unknown, false},
		{"fast over the target", 25 * ms, 10 * time.Millisecond, event.Usage{Running: readingMS(190), Waiting: readingMS(0)}, verdict.Unknown, true},
	} {
		p := newSessionWithTargets(Targets{TPOT: c.tpot})
		p.state(0, 1, event.StateQueued, nil)
		p.state(0, 1, event.StateDispatched, nil)
		for at := int64(0); at < 4*sec; {
			p.token(c.gap, 1, 1)
			if at += c.gap; at%(100*ms) == 0 {
				p.usage(100*ms, c.usage)
			}
		}
		l := &p.store.Snapshot().Losses.Windows[metric.Session]
		if got := l.N[c.want] > 0; got != c.n || c.n && l.NS[c.want] < int64(time.Second) {
			t.Errorf("%s: losses %+v", c.name, l)
		}
	}
}

// TestStopsCountOnce stops the process for 400 ms while a prompt is processed, and while tokens are decoded, across the end
// of a second: what a stall or a slow first token lost is not lost by the rest of its second again.
func TestStopsCountOnce(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	running, stopped := event.Usage{Running: readingMS(90), Waiting: readingMS(1)}, event.Usage{Running: readingMS(0), Waiting: readingMS(0), Stopped: readingMS(100)}
	for at := int64(0); at < 4*sec; at += 100 * ms {
		if at < 400*ms || at >= 1700*ms && at < 2100*ms {
			p.now += event.Time(100 * ms)
			p.usage(100*ms, stopped)
			continue
		}
		for range 10 {
			p.token(10*ms, 1, 1)
		}
		p.usage(100*ms, running)
	}
	if l := &p.store.Snapshot().Losses.Windows[metric.Session]; l.NS[verdict.Stopped] < 600*ms || l.NS[verdict.Stopped] > 640*ms || l.Total() != l.NS[verdict.Stopped] {
		t.Errorf("losses %+v, want 400 ms, and what the first token took of 400 ms over its target", l)
	}
}

// TestSlowSecondsOnGPU decodes slowly while samples of the GPUs have a reason for that, and with the same reason on a GPU
// that the engine does not use.
func TestSlowSecondsOnGPU(t *testing.T) {
	v := event.MeasuredValue
	clocked := event.GPU{Clock: v(800e6), MaxClock: v(2000e6)}
	hot, capped := clocked, clocked
	hot.ThermallySlowed, capped.PowerCapped = v(1), v(1)
	for _, c := range []struct {
		gpu     event.GPU
		process event.Process
		want    verdict.Cause
	}{
		{hot, event.Process{}, verdict.GPUHeat},
		{capped, event.Process{}, verdict.GPUPower},
		{clocked, event.Process{}, verdict.Unknown},
		{event.GPU{EngineUtil: v(.35), OthersUtil: v(.6)}, event.Process{}, verdict.GPUOthers},
		{event.GPU{EngineUtil: v(.1), OthersUtil: v(.6)}, event.Process{}, verdict.Unknown},
		{event.GPU{DRAM: v(.8)}, event.Process{}, verdict.GPUMemory},
		{event.GPU{DRAM: v(.5)}, event.Process{}, verdict.Unknown},
		{event.GPU{}, event.Process{LaunchGap: v(.62), Launches: v(9e4)}, verdict.LaunchGaps},
		{event.GPU{}, event.Process{LaunchGap: v(.1), Launches: v(9e4)}, verdict.Unknown},
		{event.GPU{}, event.Process{LaunchGap: v(.1), Copying: v(.6)}, verdict.Copies},
		{event.GPU{}, event.Process{LaunchGap: v(.1), Copying: v(.2)}, verdict.Unknown},
	} {
		for _, uses := range []bool{true, false} {
			p := newSessionWithTargets(Targets{})
			p.state(0, 1, event.StateQueued, nil)
			p.state(0, 1, event.StateDispatched, nil)
			c.gpu.EngineMem = v(0)
			if uses {
				c.gpu.EngineMem = v(1e9)
			}
			for at := int64(0); at < 4*sec; {
				p.token(100*ms, 1, 1)
				if at += 100 * ms; at%(100*ms) == 0 {
					p.usage(100*ms, event.Usage{Running: readingMS(10), Waiting: readingMS(0)})
				}
				if at%sec == 0 {
					p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: sec, GPUs: []event.GPU{c.gpu}, Engine: c.process}})
				}
			}
			want := c.want
			if !uses && want != verdict.LaunchGaps && want != verdict.Copies {
				want = verdict.Unknown
			}
			l := &p.store.Snapshot().Losses.Windows[metric.Session]
			if want != verdict.Unknown && l.NS[want] < int64(time.Second) || want == verdict.Unknown && l.Total() != l.NS[want] {
				t.Errorf("%+v, used %v: losses %+v, want %v", c, uses, l, want)
			}
		}
	}
}

// TestComputedGPUBandwidth decodes 10 tokens/s with a model of 1 GB: on GPUs whose driver does not measure what their memory
// moves, that is compared with their data sheet, if they hold the model.
func TestComputedGPUBandwidth(t *testing.T) {
	v := event.MeasuredValue
	gpu := event.GPU{EngineMem: v(1.2e9), MemBandwidth: event.DerivedValue(12e9)}
	half, measured, unknown := gpu, gpu, gpu
	half.EngineMem, measured.DRAM, unknown.MemBandwidth = v(.5e9), v(.1), event.Reading{}
	for name, c := range map[string]struct {
		gpus []event.GPU
		want string // evidence
	}{
		"one":         {[]event.GPU{gpu, {MemBandwidth: v(1e15)}}, "its memory moved 10.0 GB/s of 12.0 GB/s, computed: what decoding reads / the GPU's data sheet"},
		"two":         {[]event.GPU{gpu, gpu}, ""},
		"on the CPU":  {[]event.GPU{half}, ""},
		"measured":    {[]event.GPU{measured}, ""},
		"unknown":     {[]event.GPU{unknown}, ""},
		"of a driver": {[]event.GPU{func() event.GPU { g := measured; g.DRAM = v(.8); return g }()}, "its memory moved 9.60 GB/s of 12.0 GB/s, measured by the driver"},
	} {
		p := newSessionWithTargets(Targets{})
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Caps: event.CapSteps, State: event.EngineReady, Device: event.Device{Name: "GPU"}}})
		p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "m", WeightBytes: 1e9, KVBytes: 1}})
		p.state(0, 1, event.StateQueued, nil)
		p.state(0, 1, event.StateDispatched, nil)
		evidence := ""
		for at := int64(0); at < 4*sec; {
			p.step(100*ms, 1, 0)
			p.token(0, 1, 1)
			if at += 100 * ms; at%sec == 0 {
				p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: sec, GPUs: c.gpus}})
				evidence = p.store.Snapshot().Losses.Worst[verdict.GPUMemory].Evidence
			}
		}
		if evidence != c.want {
			t.Errorf("%s: %q, want %q", name, evidence, c.want)
		}
	}
}

// TestSlowSecondsOfServers polls a server that reports two running requests, and no token, while its threads do or do not
// wait for a core.
func TestSlowSecondsOfServers(t *testing.T) {
	for _, c := range []struct {
		name    string
		running float64
		every   int64       // between polls
		usage   event.Usage // of each 100 ms; no interval: none
		cause   verdict.Cause
		lost    float64 // of the time of requests
		silent  bool    // no answer to polls after the first
	}{
		{"waiting for cores", 2, sec, event.Usage{Running: readingMS(20), Waiting: readingMS(80)}, verdict.OtherProcesses, .8, false},
		{"polled more often", 2, sec / 4, event.Usage{Running: readingMS(20), Waiting: readingMS(80)}, verdict.OtherProcesses, .8, false},
		{"polled less often", 2, 5 * sec, event.Usage{Running: readingMS(20), Waiting: readingMS(80)}, verdict.OtherProcesses, .8, false},
		{"throttled", 2, sec, event.Usage{Running: readingMS(20), Waiting: readingMS(80), Throttled: readingMS(80)}, verdict.CPUQuota, .8, false},
		{"stopped", 2, sec, event.Usage{Running: readingMS(50), Waiting: readingMS(0), Stopped: readingMS(50)}, verdict.Stopped, .5, false},
		{"stopped, and so silent", 2, sec, event.Usage{Running: readingMS(0), Waiting: readingMS(0), Stopped: readingMS(100)}, verdict.Stopped, 1, true},
		{"on its cores", 2, sec, event.Usage{Running: readingMS(100), Waiting: readingMS(5)}, verdict.Unknown, 0, false},
		{"on an accelerator", 2, sec, event.Usage{Running: readingMS(10), Waiting: readingMS(9)}, verdict.Unknown, 0, false},
		{"without a request", 0, sec, event.Usage{Running: readingMS(20), Waiting: readingMS(80)}, verdict.Unknown, 0, false},
		{"without samples", 2, sec, event.Usage{}, verdict.Unknown, 0, false},
	} {
		p := newSession()
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vllm", Caps: event.CapAggregates, State: event.EngineReady}})
		for at := int64(0); at < 10*sec; {
			at += 100 * ms
			p.now += event.Time(100 * ms)
			if c.usage.Running.OK() {
				p.usage(100*ms, c.usage)
			}
			if at%c.every == 0 && (!c.silent || at == c.every) {
				p.emit(0, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: c.every, Running: event.ReportedValue(c.running), Generated: event.ReportedValue(100)}})
			}
			p.store.Snapshot()
		}
		all, _, _ := p.store.Snapshot().Losses.Over(metric.Session)
		if got := all.Share(c.cause).V; math.Abs(got-c.lost) > .1*c.lost || c.lost > 0 && all.NS[c.cause] != all.Total() || c.lost == 0 && all.Total() > 0 {
			t.Errorf("%s: %v of the time, want %v; losses %+v", c.name, got, c.lost, all)
		}
	}
}

// TestQueueOfSlowRequests checks what a TTFT over its target is put down to.
func TestQueueOfSlowRequests(t *testing.T) {
	for want, during := range map[verdict.Cause]func(p *session){
		verdict.Queue:  func(p *session) { p.now += event.Time(sec) },
		verdict.Pacing: func(p *session) { p.stage(2, event.StagePacedByOthers, 2*sec, 0) },
	} {
		p := newSession()
		p.engine(event.CapQueue)
		decoding(p, 1, ms)
		p.state(0, 2, event.StateQueued, nil)
		during(p)
		p.state(0, 2, event.StateDispatched, nil)
		p.token(ms, 2, 1)
		if r := p.request(t, 2); r.Slow == nil || r.Slow.Cause != want || r.Slow.Lost < 800*ms || p.request(t, 1).Slow != nil {
			t.Errorf("%v, want %v", r.Slow, want)
		}
	}
}

// TestOwnPrompt checks that a slow prompt is put down to its length only if other prompts took as long for it: a first
// one may wait for kernels that are compiled, libraries that are loaded, caches that are cold.
func TestOwnPrompt(t *testing.T) {
	type prompt struct {
		tokens int
		took   int64 // ms
	}
	long := prompt{1000, 1000}
	for name, c := range map[string]struct {
		before []prompt
		warm   bool // the model load reported a warm-up
		last   prompt
		want   verdict.Cause
	}{
		"first":                             {nil, false, long, verdict.Unknown},
		"first after a warm-up":             {nil, true, long, verdict.OwnPrompt},
		"as fast per token as a short one":  {[]prompt{{10, 10}}, false, long, verdict.OwnPrompt},
		"as fast as another":                {[]prompt{{1000, 900}}, false, long, verdict.OwnPrompt},
		"with a fixed part":                 {[]prompt{{1, 400}, {1000, 900}}, false, prompt{500, 650}, verdict.OwnPrompt},
		"short, slower than a long one":     {[]prompt{{1000, 100}}, false, prompt{10, 800}, verdict.Unknown},
		"the first of its kind, after warm": {[]prompt{{20, 20}, {20, 25}}, true, prompt{20, 800}, verdict.Unknown},
		"of unknown length":                 {[]prompt{{20, 20}}, false, prompt{0, 800}, verdict.Unknown},
	} {
		p := newSession()
		p.engine(event.CapQueue)
		if c.warm {
			p.stage(0, event.StageLoadWarmup, 10*ms, 0)
		}
		id := event.RequestID(0)
		run := func(x prompt) *Request {
			id++
			p.state(ms, id, event.StateQueued, nil)
			p.state(0, id, event.StateDispatched, nil)
			p.stage(id, event.StagePrompt, x.took*ms, int32(x.tokens))
			p.token(0, id, 1)
			p.token(10*ms, id, 1)
			p.state(0, id, event.StateFinished, &event.Outcome{Prompt: x.tokens, Generated: 2})
			return p.request(t, id)
		}
		for _, x := range c.before {
			run(x)
		}
		if r := run(c.last); r.Slow == nil || r.Slow.Cause != c.want {
			t.Errorf("%s: %+v, want %v", name, r.Slow, c.want)
		}
		_, decode, _ := p.store.Snapshot().Losses.Over(metric.Session)
		if decode.Total() > 0 {
			t.Errorf("%s: losses of first tokens are among those of decoding: %+v", name, decode)
		}
	}
}

// TestLossSeconds adds seconds in any order: they stay in ascending order, each is kept once, and the oldest go first.
func TestLossSeconds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var c causes
		for _, sec := range rapid.SliceOfN(rapid.Int64Range(0, 3*lossSeconds), 1, 300).Draw(r, "seconds") {
			tooOld := len(c.seconds) == lossSeconds && sec < c.seconds[0].second
			switch w := c.at(sec); {
			case (w == nil) != tooOld:
				r.Fatalf("second %d: nil is %t, too old is %t", sec, w == nil, tooOld)
			case w == nil:
			case w.second != sec:
				r.Fatalf("second %d: got %d", sec, w.second)
			}
			if i, ok := c.find(sec); ok == tooOld || ok && c.seconds[i].second != sec {
				r.Fatalf("second %d is not found", sec)
			}
			if !slices.IsSortedFunc(c.seconds, func(a, b lossSecond) int { return int(a.second - b.second) }) || len(c.seconds) > lossSeconds {
				r.Fatalf("the seconds are not in order: %d", len(c.seconds))
			}
		}
	})
}
