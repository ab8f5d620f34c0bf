package store

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/metric"
)

// heapInUse returns the bytes in use after garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryIsStableOverADay checks that memory does not grow between the second hour and the end of a day. The engine
// finishes a request every 30 s, after enough requests to fill the ring and the past; the machine is sampled every
// second; the past is kept.
func TestMemoryIsStableOverADay(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const (
		hour    = 3600 // s
		tokens  = 20   // per request
		warmUp  = MaxRequests + MaxEarlier
		maxMore = 2 << 20 // bytes
	)
	p := newSessionWithPast(NewPastBudget(MaxPastBytes))
	p.engine(event.CapTokens | event.CapQueue)
	p.moe(2, 4, 2)
	requests := uint64(0)
	play := func() {
		requests++
		p.playRequest(event.RequestID(requests), 10*ms, ms+int64(requests%11)*us, tokens)
	}
	for i := range warmUp {
		play()
		if i%100 == 0 {
			p.store.Snapshot() // applies the queue
		}
	}
	counts := make([]uint64, 8)
	began, early := p.now, int64(0)
	for second := range 24 * hour {
		p.now = began + event.Time(int64(second+1)*sec)
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
			Interval: sec, Engine: event.Process{PID: 1, CPU: event.MeasuredValue(float64(second % 7)), RSS: event.MeasuredValue(float64(second % 1000))},
		}})
		if second%30 == 0 {
			for i := range counts {
				counts[i] += uint64(second % (i + 2))
			}
			play()
			p.emitPicks(2, 4, make([]uint64, 8), counts, [2]uint64{metric.Decode: tokens * requests})
		}
		if second%10 == 0 {
			p.store.Snapshot()
		}
		if second == 2*hour {
			early = heapInUse()
		}
	}
	s := p.store.Snapshot()
	grown := heapInUse() - early
	runtime.KeepAlive(p)
	t.Logf("%d KB in use after two hours, %d KB more after a day", early>>10, grown>>10)
	if grown > maxMore {
		t.Errorf("%d KB more in use after a day than after two hours", grown>>10)
	}
	if s.Counts.Finished != requests || s.Counts.GeneratedTokens != requests*tokens || s.Drops.Total() != 0 {
		t.Errorf("%d requests: counts %+v, dropped %v", requests, s.Counts, s.Drops)
	}
}

// TestMillionOpenRequests checks that a million requests that stay open take no more memory than the bounds of the
// store allow.
func TestMillionOpenRequests(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const many, limit = 1_000_000, 40 << 20 // bytes: MaxOpen requests and maxOverflow ids
	p := newSession()
	before := heapInUse()
	for id := range event.RequestID(many) {
		p.state(us, id+1, event.StateQueued, &event.Request{Group: fmt.Sprint("g", id), Prompt: "p"})
		p.token(us, id+1, 1)
		if id%4096 == 0 {
			p.store.Snapshot()
		}
	}
	s := p.store.Snapshot()
	grown := heapInUse() - before
	t.Logf("%d KB for %d requests", grown>>10, many)
	if grown > limit {
		t.Errorf("%d MB in use", grown>>20)
	}
	c := s.Counts
	if len(s.Requests) != MaxOpen || c.Running != many || c.UnmeasuredOpen != many-MaxOpen || c.OmittedRequests != many-MaxOpen || c.GeneratedTokens != many || s.Drops.Total() != 0 {
		t.Errorf("%d kept, counts %+v, dropped %v", len(s.Requests), c, s.Drops)
	}
	if s.Requests[0].ID != MaxOpen {
		t.Errorf("the newest is %d, want %d: a running request was displaced", s.Requests[0].ID, MaxOpen)
	}
	if n := len(p.store.state.requests.overflow.requests); n > maxOverflow {
		t.Errorf("%d ids in overflow, above maxOverflow", n)
	}
	for id := range event.RequestID(many) {
		p.state(0, id+1, event.StateFinished, &event.Outcome{Prompt: 2, Generated: 1})
		if id%4096 == 0 {
			p.store.Snapshot()
		}
	}
	s = p.store.Snapshot()
	c = s.Counts
	if c.Finished != many || c.Running != 0 || c.UnmeasuredOpen != 0 || c.GeneratedTokens != many || c.PromptTokens != 2*many || s.Drops.Total() != 0 {
		t.Errorf("after all ends: counts %+v, dropped %v", c, s.Drops)
	}
	runtime.KeepAlive(p)
}

// TestDetailOfTokensIsBounded checks that the newest tokens keep their alternatives and picks within MaxDetail.
func TestDetailOfTokensIsBounded(t *testing.T) {
	p := newSession()
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
			sum += r.Tokens[i].detailSize()
			if r.Tokens[i].Picks != nil {
				kept++
			}
		}
		if last := r.Tokens[len(r.Tokens)-1]; sum > MaxDetail || kept < MaxDetail/2/size-2 || last.Text != "w" || last.Picks == nil || sum != p.store.state.requests.byID[1].detailBytes {
			t.Fatalf("after %d tokens: %d KB of %d tokens are kept, detailBytes is %d KB", i+1, sum>>10, kept, p.store.state.requests.byID[1].detailBytes>>10)
		}
	}
}

// TestUntrackedRequestsAreCountedOnce checks that repeated ends count once, and add the tokens that had not been
// counted.
func TestUntrackedRequestsAreCountedOnce(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.token(ms, 1, 2)
	for range 3 {
		p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 5})
		for id := range event.RequestID(MaxRequests) { // evict it
			p.state(0, id+100, event.StateQueued, nil)
			p.state(0, id+100, event.StateFinished, nil)
		}
		p.state(0, 9999, event.StateFailed, &event.Outcome{Prompt: 4, Cached: 1, Padding: 2, Generated: 7})
	}
	c := p.store.Snapshot().Counts
	if c.Finished != 1+MaxRequests || c.Failed != 1 || c.GeneratedTokens != 5+7 || c.PromptTokens != 3+4 || c.CachedTokens != 1 || c.PadTokens != 2 {
		t.Errorf("counts %+v", c)
	}
}

// TestDuplicateAndUnknownRequests checks that repeated events count once, and that events of unknown requests are
// ignored.
func TestDuplicateAndUnknownRequests(t *testing.T) {
	p := newSession()
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
	if err := checkSnapshot(s); err != nil {
		t.Error(err)
	}
}

// TestClocksThatJump checks that stamps that run backwards, or lie years away, give no negative times, and do not
// affect later requests.
func TestClocksThatJump(t *testing.T) {
	const year = 365 * 24 * 3600 * sec
	p := newSession()
	emitAt := func(at int64, e event.Event) {
		e.At = event.Time(at)
		p.store.Emit(e)
		if err := checkSnapshot(p.store.Snapshot()); err != nil {
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
		emitAt(int64(p.now), event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued})
		for k := range int64(3) {
			emitAt(at-k*ms, event.Event{Kind: event.KindToken, Req: id, N: 1}) // backwards
			tokens++
		}
		emitAt(at, event.Event{Kind: event.KindStep, Dur: math.MaxInt64, N: 1})
		emitAt(at, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 1, Total: 2, Pinned: event.Time(at)}})
		emitAt(at, event.Event{Kind: event.KindExperts, Data: &event.Experts{Layers: 1, Experts: 1, Prompt: []uint64{tokens}, Decode: []uint64{tokens}}})
		emitAt(int64(p.now), event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished})
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

// TestChangingExpertShapes checks that picks restart when layers or experts change, and that old shapes are freed.
func TestChangingExpertShapes(t *testing.T) {
	eventtest.SkipUnderRace(t)
	p := newSession()
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
		if s := p.store.Snapshot(); s.Experts.Layers != 94 || s.Experts.Experts != 256 || len(s.Experts.Hits(metric.Session, metric.Decode).Counts) != 94*256 {
			t.Fatalf("picks of %d x %d", s.Experts.Layers, s.Experts.Experts)
		}
		if i == 40 {
			before = heapInUse()
		}
	}
	if grown := heapInUse() - before; grown > 4<<20 {
		t.Errorf("%d MB are kept of earlier shapes", grown>>20)
	}
	shape(1, 4)
	if h := p.store.Snapshot().Experts.Hits(metric.Session, metric.Decode); len(h.Layers) != 1 || h.Counts[3] != 0 && h.Counts[3] != 5 {
		t.Errorf("picks %v after a change", h.Counts)
	}
	runtime.KeepAlive(p)
}

// TestInvalidNumbers checks that NaN, infinities and negative numbers give no reading, and do not change others.
func TestInvalidNumbers(t *testing.T) {
	p := newSession()
	playTypical(p, nil)
	endTypical(p, event.StateFinished, "stop")
	before := p.store.Snapshot()
	nan, inf := math.NaN(), math.Inf(-1)
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: -1, Cores: []float64{nan, -1}, CPU: event.MeasuredValue(nan), MemUsed: event.MeasuredValue(-5), MemTotal: event.MeasuredValue(nan), Engine: event.Process{CPU: event.MeasuredValue(inf), RunWait: event.MeasuredValue(nan)},
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
	if err := checkSnapshot(s); err != nil {
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

// A source that may wait loses nothing, although nobody applies events meanwhile; another one loses what does not fit.
func TestPatientSourceLosesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		sink func(s *Store) event.Sink
		lost bool
	}{
		{"waits", func(s *Store) event.Sink { return s.Patient(s) }, false},
		{"does not", func(s *Store) event.Sink { return s }, true},
	} {
		p := newSession()
		p.state(0, 1, event.StateQueued, nil)
		sink := c.sink(p.store)
		for i := range 3 * event.DefaultQueue {
			sink.Emit(event.Event{Kind: event.KindToken, Req: 1, N: 1, Index: int32(i), At: p.now})
		}
		v := p.store.Snapshot()
		if lost := v.Drops.Total() > 0; lost != c.lost {
			t.Errorf("a source that %s: %d events dropped", c.name, v.Drops.Total())
		}
		if !c.lost && v.Counts.GeneratedTokens != 3*event.DefaultQueue {
			t.Errorf("a source that %s: %d tokens", c.name, v.Counts.GeneratedTokens)
		}
	}
}

// TestEndedRequestsAreBoundedInBytes checks that MaxRequests ended requests with full lists take no more memory than
// documented at the constants.
func TestEndedRequestsAreBoundedInBytes(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const limit = 160_000 * MaxRequests // bytes
	p := newSession()
	before := heapInUse()
	for id := range event.RequestID(MaxRequests) {
		p.state(us, id+1, event.StateQueued, nil)
		for i := range MaxTokens {
			picks := make([]uint16, 2*8)
			for k := range picks {
				picks[k] = uint16((int(id) + i*k) % 16)
			}
			ns := uint32(i*7919) % 10_000
			p.emit(int64(25_000_000+ns*17), event.Event{
				Kind: event.KindToken, Req: id + 1, ID: int32(i*7919) % 4096, Index: int32(i), N: 1, Step: uint64(i + 1), Text: " word", Picks: picks,
				Split: event.Split{Embed: 900, Attention: 170_000 + ns, Router: 12_000 + ns/10, Experts: 330_000 + ns, Head: 61_000 + ns/2, Sample: 7_000 + ns/10}, Layer: -1,
			})
		}
		p.state(us, id+1, event.StateFinished, nil)
		p.store.Drain()
	}
	s := p.store.Snapshot()
	runtime.GC()
	grown := heapInUse() - before
	t.Logf("%d bytes per request", grown/MaxRequests)
	if n := len(s.Requests[0].Tokens); len(s.Requests) != MaxRequests || n != MaxTokens || grown > limit {
		t.Errorf("%d requests of %d tokens in %d kB, limit %d", len(s.Requests), n, grown>>10, limit>>10)
	}
	runtime.KeepAlive(p)
}
