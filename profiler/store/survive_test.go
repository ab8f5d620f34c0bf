package store

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// heap is how many bytes are in use once all that can be let go is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDayTakesNoMoreMemoryThanItsSecondHour: an engine that answers a request every 30 s, after as many at once as are kept of the past, on a machine
// that is sampled every second, with the last minutes remembered.
func TestDayTakesNoMoreMemoryThanItsSecondHour(t *testing.T) {
	const hour, tokens, crowd, more = 3600, 20, MaxRequests + MaxPast, 2 << 20
	p := remembering(DefaultHistory, segmentEvents)
	p.engine(event.CapTokens | event.CapQueue)
	p.moe(2, 4, 2)
	asked := uint64(0)
	ask := func() {
		asked++
		p.ask(event.RequestID(asked), 10*ms, ms+int64(asked%11)*us, tokens)
	}
	for i := range crowd {
		ask()
		if i%100 == 0 {
			p.store.Snapshot() // which takes what waits to be counted
		}
	}
	counts := make([]uint64, 8)
	began, early := p.now, int64(0)
	for second := range 24 * hour {
		p.now = began + event.Time(int64(second+1)*sec)
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
			Interval: sec, Engine: event.Process{PID: 1, CPU: event.Of(float64(second % 7)), RSS: event.Of(float64(second % 1000))},
		}})
		if second%30 == 0 {
			for i := range counts {
				counts[i] += uint64(second % (i + 2))
			}
			ask()
			p.picked(2, 4, make([]uint64, 8), counts, [2]uint64{metric.Decode: tokens * asked})
		}
		if second%10 == 0 {
			p.store.Snapshot()
		}
		if second == 2*hour {
			early = heap()
		}
	}
	s := p.store.Snapshot()
	grown := heap() - early
	runtime.KeepAlive(p)
	t.Logf("%d KB in use after two hours, %d KB more after a day", early>>10, grown>>10)
	if grown > more {
		t.Errorf("%d KB more are in use after a day than after two hours", grown>>10)
	}
	if s.Counts.Finished != asked || s.Counts.GeneratedTokens != asked*tokens || s.Lost.Total() != 0 {
		t.Errorf("of %d requests: counts %+v, lost %v", asked, s.Counts, s.Lost)
	}
}

// TestMillionRequestsThatNeverEnd leave no more behind than the bounds of the store allow.
func TestMillionRequestsThatNeverEnd(t *testing.T) {
	const many, most = 1_000_000, 16 << 20 // 256 requests and the ids of 4096
	p := newPlay()
	before := heap()
	for id := range event.RequestID(many) {
		p.state(us, id+1, event.StateQueued, &event.Request{Group: fmt.Sprint("g", id), Prompt: "p"})
		p.token(us, id+1, 1)
		if id%4096 == 0 {
			p.store.Snapshot()
		}
	}
	s := p.store.Snapshot()
	grown := heap() - before
	t.Logf("%d KB are kept of %d requests", grown>>10, many)
	if grown > most {
		t.Errorf("%d MB are kept", grown>>20)
	}
	c := s.Counts
	if len(s.Requests) != MaxRequests || c.Running != MaxRequests || c.MoreRequests != many-MaxRequests || c.GeneratedTokens != many || s.Lost.Total() != 0 {
		t.Errorf("%d kept, counts %+v, lost %v", len(s.Requests), c, s.Lost)
	}
	if s.Requests[0].ID != many {
		t.Errorf("the newest is %d", s.Requests[0].ID)
	}
	if n := len(p.store.state.requests.gone.counted); n > maxGone {
		t.Errorf("%d ids of requests that are gone are kept", n)
	}
	runtime.KeepAlive(p)
}

// TestDetailOfTokensIsBounded: of an engine that tells much of each token, the newest tokens keep it.
func TestDetailOfTokensIsBounded(t *testing.T) {
	p := newPlay()
	p.state(0, 1, event.StateQueued, nil)
	const size = 2 << 10
	for i := range 5000 {
		top := []event.TopProb{{ID: 1, Text: strings.Repeat("x", size/2)}}
		p.emit(us, event.Event{Kind: event.KindToken, Req: 1, N: 1, Text: "w", Picks: make([]uint16, size/4), Top: top})
		if i%1000 != 999 {
			continue
		}
		r := p.request(t, 1)
		sum, kept := 0, 0
		for i := range r.Tokens {
			sum += r.Tokens[i].detail()
			if r.Tokens[i].Picks != nil {
				kept++
			}
		}
		if last := r.Tokens[len(r.Tokens)-1]; sum > MaxDetail || kept < MaxDetail/2/size-2 || last.Text != "w" || last.Picks == nil || sum != p.store.state.requests.byID[1].detail {
			t.Fatalf("after %d tokens %d KB are kept, of %d tokens; counted are %d KB", i+1, sum>>10, kept, p.store.state.requests.byID[1].detail>>10)
		}
	}
}

// TestUnseenRequestsAreCountedOnce, however often their end is told, and with those of their tokens that had not been counted.
func TestUnseenRequestsAreCountedOnce(t *testing.T) {
	p := newPlay()
	p.state(0, 1, event.StateQueued, nil)
	p.token(ms, 1, 2)
	for id := range event.RequestID(MaxRequests) { // as many that go on push the first one out
		p.state(0, id+2, event.StateQueued, nil)
	}
	for range 3 {
		p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 5})
		p.state(0, 9999, event.StateFailed, &event.Outcome{Prompt: 4, Cached: 1, Padding: 2, Generated: 7})
	}
	p.state(0, 2, event.StateFinished, &event.Outcome{Generated: 1})
	p.state(0, 5000, event.StateQueued, nil) // takes the place of 2
	p.state(0, 2, event.StateFinished, &event.Outcome{Generated: 1})
	c := p.store.Snapshot().Counts
	if c.Finished != 2 || c.Failed != 1 || c.GeneratedTokens != 5+7+1 || c.PromptTokens != 3+4 || c.CachedTokens != 1 || c.PadTokens != 2 {
		t.Errorf("counts %+v", c)
	}
}

// TestDuplicateAndUnknownRequests: what repeats is taken once, what is about a request that nobody has begun is passed over.
func TestDuplicateAndUnknownRequests(t *testing.T) {
	p := newPlay()
	for range 3 {
		p.state(ms, 7, event.StateQueued, &event.Request{Group: "g"})
	}
	p.state(ms, 7, event.StateDispatched, nil)
	p.state(ms, 7, event.StateQueued, &event.Request{Group: "other"})
	p.token(ms, 7, 1)
	p.token(ms, 99, 1)
	p.stage(99, event.StagePrompt, ms, 5)
	p.state(0, 0, event.StateQueued, nil)
	p.state(0, 98, event.StateNone, nil)
	p.state(0, 97, event.NumStates, nil)
	for range 2 {
		p.state(ms, 7, event.StateFinished, &event.Outcome{Generated: 1})
	}
	s := p.store.Snapshot()
	if len(s.Requests) != 1 || s.Requests[0].Group != "g" || s.Counts.Finished != 1 || s.Counts.GeneratedTokens != 1 {
		t.Errorf("%d requests, counts %+v", len(s.Requests), s.Counts)
	}
	if err := sound(s); err != nil {
		t.Error(err)
	}
}

// TestClocksThatJump: stamps that run backwards, or lie years away, make no negative times, and what comes after them counts as before.
func TestClocksThatJump(t *testing.T) {
	const year = 365 * 24 * 3600 * sec
	p := newPlay()
	stamp := func(at int64, e event.Event) {
		e.At = event.Time(at)
		p.store.Emit(e)
		if err := sound(p.store.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	tokens := uint64(0)
	for i, jump := range []int64{0, -ms, year, -year, math.MaxInt64, math.MinInt64, 0} {
		p.now += event.Time(sec)
		id, at := event.RequestID(i+1), int64(p.now)+jump
		if jump == math.MaxInt64 || jump == math.MinInt64 {
			at = jump
		}
		stamp(int64(p.now), event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued})
		for k := range int64(3) {
			stamp(at-k*ms, event.Event{Kind: event.KindToken, Req: id, N: 1}) // backwards, too
			tokens++
		}
		stamp(at, event.Event{Kind: event.KindStep, Dur: math.MaxInt64, N: 1})
		stamp(at, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 1, Total: 2, Pinned: event.Time(at)}})
		stamp(at, event.Event{Kind: event.KindExperts, Data: &event.Experts{Layers: 1, Experts: 1, Prompt: []uint64{tokens}, Decode: []uint64{tokens}}})
		stamp(int64(p.now), event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished})
	}
	p.state(0, 100, event.StateQueued, nil)
	p.token(30*ms, 100, 1)
	p.token(20*ms, 100, 1)
	s := p.store.Snapshot()
	if s.Counts.GeneratedTokens != tokens+2 || s.Counts.Finished != 7 {
		t.Errorf("counts %+v, want %d tokens", s.Counts, tokens+2)
	}
	want(t, "TTFT after all jumps", s.Requests[0].TTFT, .03)
	if gaps := s.Requests[0].Gaps; len(gaps) != 1 || gaps[0] != 20*ms {
		t.Errorf("gaps %v after all jumps", gaps)
	}
}

// TestShapesThatChange: the picks of a model whose layers or experts change on the way begin anew with each shape, and leave nothing behind.
func TestShapesThatChange(t *testing.T) {
	p := newPlay()
	shape := func(layers, experts int) {
		n := layers * experts
		x := &event.Experts{Layers: layers, Experts: experts, Used: 2, Prompt: make([]uint64, n), Decode: make([]uint64, n), DecodeTokens: 1}
		x.Decode[n-1] = 5
		p.emit(100*ms, event.Event{Kind: event.KindExperts, Data: x})
	}
	var before int64
	for i := range 100 {
		shape(2, 8)
		shape(4, 8)
		shape(94, 256)
		if s := p.store.Snapshot(); s.Experts.Layers != 94 || s.Experts.Experts != 256 || len(s.Experts.Hits[metric.Session][metric.Decode].Counts) != 94*256 {
			t.Fatalf("picks of %d x %d", s.Experts.Layers, s.Experts.Experts)
		}
		if i == 40 {
			before = heap()
		}
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d MB are kept of shapes that are gone", grown>>20)
	}
	shape(1, 4)
	if h := p.store.Snapshot().Experts.Hits[metric.Session][metric.Decode]; len(h.Layers) != 1 || h.Counts[3] != 0 && h.Counts[3] != 5 {
		t.Errorf("picks %v after a change", h.Counts)
	}
	runtime.KeepAlive(p)
}

// TestNumbersThatAreNone: NaN, infinities and negative numbers make no reading, and falsify none.
func TestNumbersThatAreNone(t *testing.T) {
	p := newPlay()
	typical(p, nil)
	end(p, event.StateFinished, "stop")
	before := p.store.Snapshot()
	nan, inf := math.NaN(), math.Inf(-1)
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: -1, Cores: []float64{nan, -1}, CPU: event.Of(nan), MemUsed: event.Of(-5), MemTotal: event.Of(nan), Engine: event.Process{CPU: event.Of(inf), RunWait: event.Of(nan)},
	}})
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: -1, Total: -2, Freed: -3, Residency: -4}})
	p.emit(0, event.Event{Kind: event.KindStep, Dur: -5, N: -1, Prompt: -1})
	p.emit(0, event.Event{Kind: event.KindStage, Req: 1, Stage: event.StagePrompt, Dur: -1, N: -1, Layer: -7})
	p.emit(0, event.Event{Kind: event.KindToken, Req: 1, N: -1, Index: -1, ID: -9, LogP: float32(nan), HasLogP: true})
	p.state(0, 50, event.StateQueued, &event.Request{MaxTokens: -1})
	p.token(ms, 50, -7)
	p.state(0, 50, event.StateFinished, &event.Outcome{Prompt: -1, Cached: -1, Padding: -1, Generated: -1})
	p.state(0, 51, event.StateFinished, &event.Outcome{Prompt: -1, Cached: -1, Padding: -1, Generated: -1})
	s := p.store.Snapshot()
	if err := sound(s); err != nil {
		t.Error(err)
	}
	b, a := before.Counts, s.Counts
	if a.GeneratedTokens != b.GeneratedTokens+1 || a.PromptTokens != b.PromptTokens || a.CachedTokens != b.CachedTokens || a.PadTokens != b.PadTokens {
		t.Errorf("counts %+v became %+v", b, a)
	}
	if s.KV.Used != 0 || s.KV.Usage.OK() {
		t.Errorf("KV cache %+v", s.KV)
	}
}
