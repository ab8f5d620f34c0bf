package store

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// attached introduces an engine on its event socket.
func (p *session) attached(caps event.Caps, slots int) {
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "own", Caps: caps, Slots: slots, State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected},
	}})
}

// counted sends the engine's counter of requests.
func (p *session) counted(queued float64) {
	p.emit(0, event.Event{Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{{Name: "requests_queued", Value: queued}}}})
}

// batching is an engine that processes prompts one by one and generates a token of each running request in a pass. Its
// passes take all its time. One session receives all that it does, the other requests and tokens only.
type batching struct {
	traced, stamped  *session
	slots            int
	arrivals         []arrival // still to come
	waiting, running []*arrival
	overlaps         bool // two requests were open at once
}

type arrival struct {
	id                        event.RequestID
	at                        event.Time
	prompt, tokens, generated int
}

func (b *batching) emit(e event.Event) {
	b.traced.emit(0, e)
	if e.Kind == event.KindToken || e.Kind == event.KindRequest && e.State != event.StateDispatched {
		b.stamped.emit(0, e)
	}
}

// advance lets a time pass, in which requests may arrive.
func (b *batching) advance(ns int64) {
	to := b.traced.now + event.Time(ns)
	for len(b.arrivals) > 0 && b.arrivals[0].at <= to {
		a := b.arrivals[0]
		b.arrivals = b.arrivals[1:]
		b.traced.now, b.stamped.now = a.at, a.at
		b.overlaps = b.overlaps || len(b.waiting)+len(b.running) > 0
		b.waiting = append(b.waiting, &a)
		b.emit(event.Event{Kind: event.KindRequest, Req: a.id, State: event.StateQueued, Data: &event.Request{PromptTokens: a.prompt}})
	}
	b.traced.now, b.stamped.now = to, to
}

func (b *batching) token(a *arrival) {
	b.emit(event.Event{Kind: event.KindToken, Req: a.id, N: 1, Index: int32(a.generated)})
	a.generated++
}

// pass runs the next forward pass; false if nothing is left to do.
func (b *batching) pass() bool {
	const promptToken, decode = 50 * us, 5 * ms
	switch {
	case len(b.waiting) > 0 && len(b.running) < b.slots:
		a := b.waiting[0]
		b.waiting, b.running = b.waiting[1:], append(b.running, a)
		b.emit(event.Event{Kind: event.KindRequest, Req: a.id, State: event.StateDispatched})
		took := int64(a.prompt) * promptToken
		b.advance(took)
		b.emit(event.Event{Kind: event.KindStep, Dur: took, Prompt: int32(a.prompt)})
		b.emit(event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: a.id, Layer: -1, Dur: took, N: int32(a.prompt)})
		b.token(a)
	case len(b.running) > 0:
		n := len(b.running)
		b.advance(decode)
		b.emit(event.Event{Kind: event.KindStep, Dur: decode, N: int32(n)})
		for _, a := range b.running {
			b.token(a)
		}
	case len(b.arrivals) > 0:
		b.advance(int64(b.arrivals[0].at - b.traced.now))
		return true
	default:
		return false
	}
	var left []*arrival
	for _, a := range b.running {
		if a.generated < a.tokens {
			left = append(left, a)
			continue
		}
		b.emit(event.Event{Kind: event.KindRequest, Req: a.id, State: event.StateFinished, Data: &event.Outcome{Reason: "length", Prompt: a.prompt, Generated: a.tokens}})
	}
	b.running = left
	return true
}

// TestDerivedIsTrue checks what is derived from the stamps of requests and tokens against what the forward passes,
// dispatches and the KV cache of the same engine show.
func TestDerivedIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &batching{traced: newSession(), stamped: newSession(), slots: rapid.IntRange(1, 3).Draw(t, "slots")}
		knows := rapid.Bool().Draw(t, "reports its slots")
		slots := 0
		if knows {
			slots = b.slots
		}
		b.traced.attached(event.CapTokens|event.CapStages|event.CapSteps|event.CapQueue, b.slots)
		b.stamped.attached(event.CapTokens, slots)
		at := b.traced.now
		for i := range rapid.IntRange(1, 8).Draw(t, "requests") {
			at += event.Time(rapid.Int64Range(0, 300).Draw(t, "pause") * ms)
			b.arrivals = append(b.arrivals, arrival{
				id: event.RequestID(i + 1), at: at, prompt: rapid.IntRange(1, 400).Draw(t, "prompt"), tokens: rapid.IntRange(1, 30).Draw(t, "tokens"),
			})
		}
		for b.pass() {
			checkDerived(t, b)
		}
		for i, r := range b.stamped.ended {
			exact := b.traced.ended[i]
			if r.TTFT != exact.TTFT || r.Decode != exact.Decode || r.DecodeRate != exact.DecodeRate {
				t.Fatalf("request %d: TTFT %v, decode %v, %v/s, want %v, %v, %v/s", r.ID, r.TTFT, r.Decode, r.DecodeRate, exact.TTFT, exact.Decode, exact.DecodeRate)
			}
			if r.Prefill.OK() && r.Prefill != exact.Prefill {
				t.Fatalf("request %d: prefill %v, want %v", r.ID, r.Prefill, exact.Prefill)
			}
			if r.STIL.OK() && (r.STIL.V > exact.STIL.V+1e-9 || slots == 0 && r.STIL.V > 0 && !r.QueueInferred()) {
				t.Fatalf("request %d: queue time %v, but it waited %v", r.ID, r.STIL, exact.STIL)
			}
		}
	})
}

func checkDerived(t *rapid.T, b *batching) {
	got, want := b.stamped.store.Snapshot(), b.traced.store.Snapshot()
	g, w := &got.Throughput, &want.Throughput
	if w.BusyShare.OK() && !near(g.BusyShare, w.BusyShare) {
		t.Fatalf("busy %v, want %v", g.BusyShare, w.BusyShare)
	}
	if g.Decode.OK() && g.Decode.V > w.Decode.V*(1+1e-9) || !b.overlaps && !near(g.Decode, w.Decode) {
		t.Fatalf("decode %v, want %v", g.Decode, w.Decode)
	}
	if g.Prefill.OK() && !b.overlaps && !near(g.Prefill, w.Prefill) {
		t.Fatalf("prefill %v, want %v", g.Prefill, w.Prefill)
	}
	held := int64(0)
	for _, a := range b.running {
		held += int64(a.prompt + a.generated)
	}
	begins := len(b.running) == 0 && len(b.waiting) > 0 // with the next pass
	if known := len(b.waiting) == 0; !begins && (got.KV.Derived && got.KV.Used != held || known && !got.KV.Derived) {
		t.Fatalf("%d cells held, want %d", got.KV.Used, held)
	}
	c, running := &got.Counts, len(b.running)
	open := running + len(b.waiting)
	switch full := min(open, b.slots); { // what waits for a free slot begins at once
	case !c.Derived || c.Running+c.Queued != open:
		t.Fatalf("%d running and %d queued of %d", c.Running, c.Queued, open)
	case c.Running > full || c.Running < min(running, 1):
		t.Fatalf("%d running, want %d to %d", c.Running, running, full)
	case !c.AnyQueued && c.Queued != open-full:
		t.Fatalf("%d queued, want %d", c.Queued, open-full)
	}
	if total := got.Totals(); total.Queued.OK() == c.AnyQueued || total.Running.Origin != event.Derived {
		t.Fatalf("queued %v, running %v", total.Queued, total.Running)
	}
}

// near compares a derived number with the true one.
func near(got, want event.Reading) bool {
	return got.OK() == want.OK() && (!got.OK() || math.Abs(got.V-want.V) <= 1e-9*max(want.V, 1))
}

// TestDerivedNeedsAllRequests checks that nothing is derived about an engine that others use too, or that reports its
// passes, queue and KV cache itself.
func TestDerivedNeedsAllRequests(t *testing.T) {
	for name, e := range map[string]event.EngineInfo{
		"a proxy":     {Provider: "unknown", Caps: event.CapTokens, Remote: event.Remote{Link: event.LinkConnected}},
		"a client":    {Caps: event.CapTokens},
		"all it does": {Caps: event.CapTokens | event.CapSteps | event.CapQueue | event.CapKV, Remote: event.Remote{Link: event.LinkConnected}},
	} {
		p := newSession()
		e.State = event.EngineReady
		p.emit(0, event.Event{Kind: event.KindEngine, Data: &e})
		p.counted(0)
		p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: 40})
		p.token(80*ms, 1, 1)
		p.token(8*ms, 1, 1)
		s := p.store.Snapshot()
		r := p.request(t, 1)
		if s.Counts.Derived || s.KV.Derived || s.Throughput.BusyShare.OK() || r.Prefill.OK() || r.Cold == (e.Remote.Link == event.LinkNone || e.Provider != "") || r.STIL.OK() || r.PromptTokens != 40 {
			t.Errorf("%s: %+v, %+v, %+v", name, s.Counts, s.Throughput, r)
		}
	}
}

// TestPassesReplaceTokens checks that tokens count once if the first forward pass is reported late.
func TestPassesReplaceTokens(t *testing.T) {
	p := newSession()
	p.attached(event.CapTokens, 1)
	p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: 4})
	for range 5 {
		p.token(10*ms, 1, 1)
	}
	p.step(5*ms, 1, 0)
	p.attached(event.CapTokens|event.CapSteps, 1)
	p.token(0, 1, 1)
	if s := p.store.Snapshot(); s.Throughput.Decode.V != 200 || s.Throughput.Derived {
		t.Errorf("decode %v, want the pass only", s.Throughput.Decode)
	}
}

// TestPromptsThatMayBeCached checks that a prefill rate has the computed tokens where they are reported, at once if the
// engine is known to report none.
func TestPromptsThatMayBeCached(t *testing.T) {
	for cached, want := range map[int]float64{-1: 500, 30: 125, 0: 500} {
		p := newSession()
		p.attached(event.CapTokens, 1)
		for id := range event.RequestID(2) {
			p.state(0, id+1, event.StateQueued, &event.Request{PromptTokens: 40})
			p.token(80*ms, id+1, 1)
			if rate := p.store.Snapshot().Throughput.Prefill; rate.OK() != (id > 0) {
				t.Errorf("cached %d, prompt of request %d: %v", cached, id+1, rate)
			}
			p.state(8*ms, id+1, event.StateFinished, &event.Outcome{Prompt: 40, Cached: max(cached, 0), AnyCached: cached < 0})
		}
		if rate := p.store.Snapshot().Throughput.Prefill; !near(rate, event.DerivedValue(want)) {
			t.Errorf("cached %d: %v, want %v", cached, rate, want)
		}
		if r := p.request(t, 2); !near(r.PrefillRate, event.DerivedValue(want)) {
			t.Errorf("cached %d: request %v, want %v", cached, r.PrefillRate, want)
		}
	}
}

// TestWaitsForReportedSlots checks an engine that reports its slots and not when it dispatches: the time in which others
// held all of them is queue, the rest is not known.
func TestWaitsForReportedSlots(t *testing.T) {
	p := newSession()
	p.attached(event.CapTokens, 1)
	p.state(0, 1, event.StateQueued, nil)
	p.token(20*ms, 1, 1)
	p.state(30*ms, 2, event.StateQueued, nil)
	p.state(100*ms, 1, event.StateFinished, nil)
	p.token(400*ms, 2, 1)
	r := p.request(t, 2)
	if len(r.Waits) != 1 || r.Waits[0].Cause != verdict.Queue || r.Waits[0].By != 1 || !near(r.STIL, event.DerivedValue(.1)) || !r.QueueInferred() {
		t.Errorf("queue time %v, waits %+v", r.STIL, r.Waits)
	}
	if n := p.store.Snapshot().Latency.Of[STIL][metric.Session].Count; n != 0 {
		t.Errorf("%d queue times in the distribution", n)
	}
}

// TestColdIsFound checks which request counts as the first one of an engine that does not say so.
func TestColdIsFound(t *testing.T) {
	load := func(p *session, dur int64) {
		p.emit(dur, event.Event{Kind: event.KindStage, Stage: event.StageLoad, Layer: -1, Dur: dur})
	}
	request := func(p *session, id event.RequestID) {
		p.state(0, id, event.StateQueued, &event.Request{})
		p.token(50*ms, id, 1)
		p.state(0, id, event.StateFinished, nil)
	}
	for name, c := range map[string]struct {
		run  func(p *session)
		cold []bool    // by request
		ttft []float64 // s
	}{
		"nothing is known":         {func(p *session) { request(p, 1) }, []bool{false}, []float64{.05}},
		"none was counted":         {func(p *session) { p.counted(0); request(p, 1); request(p, 2) }, []bool{true, false}, []float64{.05, .05}},
		"others came before":       {func(p *session) { p.counted(3); request(p, 4) }, []bool{false}, []float64{.05}},
		"after a load":             {func(p *session) { load(p, sec); request(p, 1); request(p, 2) }, []bool{true, false}, []float64{.05, .05}},
		"after a second load":      {func(p *session) { p.counted(0); request(p, 1); load(p, sec); request(p, 2) }, []bool{true, true}, []float64{.05, .05}},
		"a load before it was met": {func(p *session) { p.now -= event.Time(sec / 2); load(p, sec/4); request(p, 1) }, []bool{false}, []float64{.05}},
		"while it loads": {func(p *session) {
			p.state(sec, 1, event.StateQueued, &event.Request{})
			p.state(0, 2, event.StateQueued, &event.Request{})
			p.emit(sec/2, event.Event{Kind: event.KindStage, Stage: event.StageLoad, Layer: -1, Dur: sec})
			for id := range event.RequestID(2) {
				p.token(50*ms, id+1, 1)
				p.state(0, id+1, event.StateFinished, nil)
			}
		}, []bool{true, false}, []float64{.55, .6}},
		"it starts the device": {func(p *session) {
			p.state(0, 1, event.StateQueued, &event.Request{DeviceStart: true})
			p.token(50*ms, 1, 1)
			p.state(0, 1, event.StateFinished, nil)
			request(p, 2)
		}, []bool{true, false}, []float64{.05, .05}},
		"it is said": {func(p *session) {
			load(p, sec)
			p.state(0, 1, event.StateQueued, &event.Request{Cold: true})
			p.token(50*ms, 1, 1)
			p.state(0, 1, event.StateFinished, nil)
			load(p, sec)
			request(p, 2)
		}, []bool{true, false}, []float64{1.05, .05}},
		"a probe": {func(p *session) {
			load(p, sec)
			p.state(0, 1, event.StateQueued, &event.Request{Probe: true})
			p.token(50*ms, 1, 1)
			p.state(0, 1, event.StateFinished, nil)
			request(p, 2)
		}, []bool{false, true}, []float64{.05, .05}},
		"a restart": {func(p *session) {
			p.counted(0)
			request(p, 1)
			p.emit(sec, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
				Name: "own", Caps: event.CapTokens, State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected, Restarts: 1},
			}})
			p.counted(0)
			request(p, 2)
		}, []bool{true, true}, []float64{.05, .05}},
	} {
		p := newSession()
		p.attached(event.CapTokens, 1)
		c.run(p)
		s := p.store.Snapshot()
		for i, r := range p.ended {
			if r.Cold != c.cold[i] || !near(r.TTFT, event.DerivedValue(c.ttft[i])) {
				t.Errorf("%s: request %d: cold %t, TTFT %v, want %t, %v", name, r.ID, r.Cold, r.TTFT, c.cold[i], c.ttft[i])
			}
			if before := LoadBefore(s, r); (before > 0) != (name == "after a load" && i == 0 || name == "after a second load" && i == 1 || name == "a probe" && i == 1) {
				t.Errorf("%s: request %d: a load of %v before it", name, r.ID, before)
			}
		}
		if n := s.Latency.Of[ColdTTFT][metric.Session].Count + s.Latency.Of[TTFT][metric.Session].Count; len(p.ended) != len(c.cold) || name != "a probe" && n != uint64(len(c.cold)) {
			t.Errorf("%s: %d requests, %d in the distributions", name, len(p.ended), n)
		}
	}
}

// TestBusyTimeIsAUnion checks the union against single ns, in whatever order intervals end.
func TestBusyTimeIsAUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []modelLoad
		var covered [200]bool
		for range rapid.IntRange(1, 30).Draw(t, "intervals") {
			from := rapid.IntRange(0, 190).Draw(t, "from")
			to := from + rapid.IntRange(0, 9).Draw(t, "length")
			want := int64(0)
			for i := from; i < to; i++ {
				if !covered[i] {
					covered[i] = true
					want++
				}
			}
			if got := addTime(&b, event.Time(from), event.Time(to)); got != want {
				t.Fatalf("%d to %d: %d ns, want %d: %v", from, to, got, want, b)
			}
			for i, one := range b {
				if one.from >= one.to || i > 0 && b[i-1].to >= one.from {
					t.Fatalf("not ascending and disjoint: %v", b)
				}
			}
		}
	})
}

// TestWaitIsNotBusy checks that the wait in a queue is no busy time, whether the engine reports when it ended or its first
// token does.
func TestWaitIsNotBusy(t *testing.T) {
	for _, dispatches := range []bool{true, false} {
		p := newSession()
		p.attached(event.CapTokens|event.CapQueue, 0)
		p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: 40})
		wait := int64(300 * ms)
		if dispatches {
			p.state(wait, 1, event.StateDispatched, nil)
			wait = 0
		}
		p.token(wait, 1, 1)
		p.token(100*ms, 1, 1)
		p.state(0, 1, event.StateFinished, &event.Outcome{Generated: 2})
		if got := p.store.Snapshot().Throughput.BusyShare; !near(got, event.DerivedValue(.25)) {
			t.Errorf("dispatches %v: busy %v, want 25 %%", dispatches, got)
		}
	}
}

// TestUnseenBeginCountsInRates checks that throughput has the requests whose begin was not seen, as the totals do.
func TestUnseenBeginCountsInRates(t *testing.T) {
	p := newSession()
	p.attached(event.CapTokens, 0)
	p.token(100*ms, 1, 1)
	p.state(400*ms, 1, event.StateFinished, &event.Outcome{Generated: 20})
	th := p.store.Snapshot().Throughput
	if !near(th.TTPS, th.SessionTTPS) || !near(th.TTPS, event.DerivedValue(40)) || !near(th.Requests, event.DerivedValue(2)) {
		t.Errorf("%v and %v tokens/s, %v requests/s, want 40, 40 and 2", th.TTPS, th.SessionTTPS, th.Requests)
	}
}

// TestResidencyIsDerived checks of which engines that report their KV cache, and not what they free, the time of a request
// is that of its cells: of those whose cells are all those of running requests.
func TestResidencyIsDerived(t *testing.T) {
	kv := func(p *session, used, page int64) {
		p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: used, Total: 1000, Page: page}})
	}
	// request runs one of 10 prompt tokens and two generated ones for 60 ms.
	request := func(p *session, id event.RequestID, prompt int, during func()) {
		p.state(ms, id, event.StateQueued, &event.Request{PromptTokens: prompt})
		p.state(5*ms, id, event.StateDispatched, nil)
		p.token(50*ms, id, 1)
		during()
		p.token(10*ms, id, 1)
		during()
		p.state(0, id, event.StateFinished, nil)
	}
	once := func(used, page int64) func(p *session) {
		return func(p *session) { request(p, 1, 10, func() { kv(p, used, page) }) }
	}
	for name, c := range map[string]struct {
		run  func(p *session)
		want uint64
	}{
		"its tokens":  {once(11, 0), 1},
		"whole pages": {once(16, 16), 1},
		"more":        {once(13, 0), 0},
		"more pages":  {once(32, 16), 0},
		"no state in its time": {func(p *session) {
			kv(p, 0, 0)
			request(p, 1, 10, func() {})
		}, 0},
		"unknown prompt": {func(p *session) { request(p, 1, 0, func() { kv(p, 5, 0) }) }, 0},
		"kept afterwards": {func(p *session) {
			once(11, 0)(p)
			kv(p, 11, 0)
			request(p, 2, 10, func() { kv(p, 11, 0) })
		}, 0},
		"what is freed is reported": {func(p *session) {
			once(11, 0)(p)
			p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Total: 1000, Freed: 11, Residency: 7 * ms}})
			request(p, 2, 10, func() { kv(p, 11, 0) })
		}, 1},
	} {
		p := newSession()
		p.attached(event.CapTokens|event.CapQueue|event.CapKV, 1)
		kv(p, 500, 0) // of the state for late joiners
		c.run(p)
		s := p.store.Snapshot()
		k, want := s.KV.Residency, 60*ms
		if name == "what is freed is reported" {
			want = 7 * ms
		}
		if k.Count != c.want || k.Count > 0 && k.Max != want || s.KV.ResidencyDerived == (want == 7*ms) {
			t.Errorf("%s: %+v, derived %t; want %d of %d ns", name, k, s.KV.ResidencyDerived, c.want, want)
		}
	}
}

// TestCellsOfAStagedPrompt checks that no cells are derived of a prompt of which only the part that was processed is known.
func TestCellsOfAStagedPrompt(t *testing.T) {
	for _, prompt := range []int{0, 40} {
		p := newSession()
		p.attached(event.CapTokens|event.CapQueue, 1)
		p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: prompt})
		p.state(ms, 1, event.StateDispatched, nil)
		p.stage(1, event.StagePrompt, 10*ms, 8) // the other 32 came from a cache
		p.token(ms, 1, 1)
		if k := p.store.Snapshot().KV; k.Derived != (prompt > 0) || k.Derived && k.Used != 41 {
			t.Errorf("a prompt of %d tokens: %d cells, derived %t", prompt, k.Used, k.Derived)
		}
	}
}

// TestPrefillOfSharedPrompts: a prompt that others joined before its first token shows no speed of the engine.
func TestPrefillOfSharedPrompts(t *testing.T) {
	for others, expected := range []any{10 / .05, "not yet"} {
		p := newSession()
		p.attached(event.CapTokens, 0)
		p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: 10})
		for i := range others {
			p.state(ms, event.RequestID(2+i), event.StateQueued, &event.Request{PromptTokens: 10})
		}
		p.now = event.Time(sec + 50*ms)
		for r := range 1 + others {
			p.token(0, event.RequestID(1+r), 1)
		}
		for r := range 1 + others {
			p.state(10*ms, event.RequestID(1+r), event.StateFinished, &event.Outcome{Prompt: 10, AnyCached: true, Generated: 1})
		}
		want(t, "prefill", p.store.Snapshot().Throughput.Prefill, expected)
	}
}

// TestImpossibleKV: more cells in use than there are is no state of a cache.
func TestImpossibleKV(t *testing.T) {
	p := newSession()
	p.attached(event.CapTokens, 0)
	p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: 10, Total: 5}})
	if v := p.store.Snapshot().KV; v.Usage.OK() || v.Used != 0 || v.Total != 0 {
		t.Errorf("%+v, want nothing", v)
	}
}

// TestCachedTokensBeforeAnyEnd: cached tokens come with the end of a request.
func TestCachedTokensBeforeAnyEnd(t *testing.T) {
	p := newSession()
	p.attached(event.CapTokens, 0)
	p.state(0, 1, event.StateQueued, &event.Request{PromptTokens: 10})
	p.token(0, 1, 1)
	want(t, "cached tokens", p.store.Snapshot().Totals().Cached, "not yet")
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 10, Generated: 1})
	want(t, "cached tokens", p.store.Snapshot().Totals().Cached, 0.)
}
