package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/metric"
)

// crowd is a session of many concurrent requests, with a model of the expected state in plain lists.
type crowd struct {
	*session
	rng   *rand.Rand
	all   map[event.RequestID]*modelRequest
	open  []event.RequestID // in order of arrival
	ended []event.RequestID // tracked ones, in the order in which they ended
	next  event.RequestID

	counts          Counts
	ttft, e2el, itl uint64
}

// modelRequest is the model's view of a request.
type modelRequest struct {
	id                          event.RequestID
	state                       event.State
	generated                   int
	enqueued, first, last, done event.Time
	tracked                     bool // fewer than MaxOpen tracked requests were open when it arrived
	gaps                        int  // tokens after the first stamp
}

func newCrowd(seed uint64, budget *PastBudget) *crowd {
	p := newSessionWithPast(budget)
	p.store.state.onRequest = func(r *Request) { p.ended = append(p.ended, r) }
	p.engine(event.CapTokens | event.CapQueue)
	return &crowd{session: p, rng: rand.New(rand.NewPCG(seed, 1)), all: map[event.RequestID]*modelRequest{}, next: 1}
}

// trackedOpen returns how many open requests the store must track.
func (c *crowd) trackedOpen() (n int) {
	for _, id := range c.open {
		if c.all[id].tracked {
			n++
		}
	}
	return n
}

func (c *crowd) begin() {
	m := &modelRequest{id: c.next, state: event.StateQueued, tracked: len(c.open) < MaxOpen || c.trackedOpen() < MaxOpen}
	c.next++
	c.state(us, m.id, event.StateQueued, &event.Request{Prompt: "a prompt", Group: fmt.Sprint("g", m.id%3)})
	m.enqueued = c.now
	c.all[m.id] = m
	c.open = append(c.open, m.id)
	if !m.tracked {
		c.counts.OmittedRequests++
		c.counts.Unmeasured++
	}
}

func (c *crowd) dispatch(m *modelRequest) {
	c.state(us, m.id, event.StateDispatched, nil)
	m.state = event.StateDispatched
}

func (c *crowd) generate(m *modelRequest, n int32) {
	c.token(int64(1+c.rng.IntN(int(us))), m.id, n)
	m.state = event.StateDispatched
	m.generated += int(n)
	c.counts.GeneratedTokens, c.counts.StampedTokens = c.counts.GeneratedTokens+uint64(n), c.counts.StampedTokens+uint64(n)
	if m.first == 0 {
		m.first = c.now
		if m.tracked {
			c.ttft++
		}
	} else if m.tracked {
		c.itl += uint64(n)
		m.gaps += int(n)
	}
	m.last = c.now
}

// end ends a request. Its outcome has the right number of tokens, or up to two more than were emitted.
func (c *crowd) end(m *modelRequest) {
	how := []event.State{event.StateFinished, event.StateFinished, event.StateCancelled, event.StateFailed}[c.rng.IntN(4)]
	extra := 0
	if c.rng.IntN(8) == 0 {
		extra = c.rng.IntN(3)
	}
	m.generated += extra
	c.state(us, m.id, how, &event.Outcome{Prompt: 5, Generated: m.generated})
	c.counts.GeneratedTokens += uint64(extra)
	c.counts.PromptTokens += 5
	m.state, m.done = how, c.now
	switch how {
	case event.StateFinished:
		c.counts.Finished++
		if m.tracked && (m.first != 0 || m.generated > 0) {
			c.e2el++
		}
	case event.StateCancelled:
		c.counts.Cancelled++
	case event.StateFailed:
		c.counts.Failed++
	}
	c.open = slices.DeleteFunc(c.open, func(id event.RequestID) bool { return id == m.id })
	if m.tracked {
		c.ended = append(c.ended, m.id)
		if len(c.ended) > MaxRequests {
			c.counts.OmittedRequests++
		}
	}
}

// step performs a random action that keeps about target requests open.
func (c *crowd) step(target int) {
	if len(c.open) == 0 || c.rng.IntN(target) > len(c.open) || c.rng.IntN(30) == 0 {
		c.begin()
		return
	}
	m := c.all[c.open[c.rng.IntN(len(c.open))]]
	switch k := c.rng.IntN(20); {
	case k == 0 || k < 10 && len(c.open) > 2*target:
		c.end(m)
	case m.state == event.StateQueued:
		c.dispatch(m)
	default:
		c.generate(m, 1+int32(c.rng.IntN(8))/7)
	}
}

// check compares a snapshot with the model.
func (c *crowd) check(t *testing.T, s *Snapshot) {
	t.Helper()
	want := c.counts
	var order []event.RequestID
	for _, id := range slices.Backward(c.open) {
		m := c.all[id]
		if m.state == event.StateQueued {
			want.Queued++
		} else {
			want.Running++
		}
		if !m.tracked {
			want.UnmeasuredOpen++
		}
	}
	for _, id := range slices.Concat(c.open, c.ended[max(len(c.ended)-MaxRequests, 0):]) {
		if c.all[id].tracked {
			order = append(order, id)
		}
	}
	slices.SortFunc(order, func(a, b event.RequestID) int { return int(b) - int(a) })
	got := s.Counts
	got.Groups, got.Steps = nil, 0
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("counts %+v\nwant   %+v", got, want)
	}
	l := &s.Latency
	if l.Of[TTFT][metric.Session].Count != c.ttft || l.Of[E2EL][metric.Session].Count != c.e2el || l.Of[ITL][metric.Session].Count != c.itl {
		t.Fatalf("%d TTFT, %d E2EL, %d ITL; want %d, %d, %d", l.Of[TTFT][metric.Session].Count, l.Of[E2EL][metric.Session].Count, l.Of[ITL][metric.Session].Count, c.ttft, c.e2el, c.itl)
	}
	ids := make([]event.RequestID, len(s.Requests))
	for i, r := range s.Requests {
		ids[i] = r.ID
		c.compare(t, r, c.all[r.ID])
	}
	if !slices.Equal(ids, order) {
		t.Fatalf("snapshot has %d requests, want %d with other ids", len(ids), len(order))
	}
	before := len(c.ended) - min(len(c.ended), MaxRequests) - len(s.Earlier)
	for i, r := range s.Earlier {
		if m := c.all[c.ended[before+i]]; r.ID != m.id || r.State != m.state || r.Generated != m.generated {
			t.Fatalf("past request %d: %v, %d tokens; want %+v", r.ID, r.State, r.Generated, m)
		}
	}
	if err := checkSnapshot(s); err != nil {
		t.Fatal(err)
	}
}

// compare compares a request with the model of it.
func (c *crowd) compare(t *testing.T, r *Request, m *modelRequest) {
	t.Helper()
	if r.State != m.state || r.Generated != m.generated || r.Enqueued != m.enqueued || r.First != m.first || r.Last != m.last || r.Closed != m.done {
		t.Fatalf("request %d: %v with %d tokens at %d, %d, %d, %d; want %+v", r.ID, r.State, r.Generated, r.Enqueued, r.First, r.Last, r.Closed, m)
	}
	if r.FirstGap+len(r.Gaps) != m.gaps || r.ITL.Count != uint64(m.gaps) {
		t.Fatalf("request %d: %d gaps from the %dth on, %d in the distribution; want %d", r.ID, len(r.Gaps), r.FirstGap, r.ITL.Count, m.gaps)
	}
	if n := len(r.Tokens); m.first != 0 {
		if last := &r.Tokens[n-1]; last.At != m.last || int(last.Nth+last.N) > m.generated {
			t.Fatalf("request %d: last token %+v, want that of %+v", r.ID, last, m)
		}
	}
}

// TestCrowdAgreesWithModel performs random actions on up to hundreds of concurrent requests: the store must agree with
// the model.
func TestCrowdAgreesWithModel(t *testing.T) {
	for seed := range uint64(4) {
		c := newCrowd(seed, nil)
		peak := 0
		for i, target := range []int{300, 900, 60, 600, 3} {
			for range 12_000 {
				c.step(target)
				if peak = max(peak, len(c.open)); c.rng.IntN(1500) == 0 {
					c.check(t, c.store.Snapshot())
				}
				if c.next%512 == 0 {
					c.store.Drain()
				}
			}
			c.check(t, c.store.Snapshot())
			t.Logf("seed %d, phase %d: %d open, peak %d, %d ended, halved %d times", seed, i, len(c.open), peak, len(c.ended), c.store.state.requests.halvings)
		}
		if peak <= 2*MaxRequests {
			t.Errorf("peak of %d open requests, want more than %d", peak, 2*MaxRequests)
		}
	}
}

// TestOverflowAboveMaxOpen checks that requests above MaxOpen are counted with their tokens and ends, and displace no
// open request.
func TestOverflowAboveMaxOpen(t *testing.T) {
	c := newCrowd(1, nil)
	for range MaxOpen + 500 {
		c.begin()
		if c.next%1000 == 0 {
			c.store.Drain()
		}
	}
	c.check(t, c.store.Snapshot())
	for round := range 3 {
		for i, id := range slices.Clone(c.open) {
			switch m := c.all[id]; {
			case round == 0 && i%3 > 0:
				c.dispatch(m)
			case round == 1 || i%7 > 0:
				c.generate(m, 2)
			default:
				c.end(m)
			}
			if i%1000 == 0 {
				c.store.Drain()
			}
		}
		c.check(t, c.store.Snapshot())
	}
	for range 300 { // some fit now
		c.begin()
	}
	c.check(t, c.store.Snapshot())
	for _, id := range slices.Sorted(maps.Keys(c.all)) {
		if m := c.all[id]; !m.state.Final() {
			c.end(m)
		}
		if id%1000 == 0 {
			c.store.Drain()
		}
	}
	c.check(t, c.store.Snapshot())
}

// TestFiveThousandStreams checks that every token, end and latency of 5,000 concurrent streams is counted, and each
// request is kept.
func TestFiveThousandStreams(t *testing.T) {
	const streams, tokens = 5000, 40
	c := newCrowd(1, NewPastBudget(MaxPastBytes))
	for range streams {
		c.begin()
	}
	for i := range tokens {
		for _, id := range c.open {
			c.generate(c.all[id], 1)
		}
		if i%8 == 0 {
			c.check(t, c.store.Snapshot())
		}
		c.store.Drain()
	}
	for _, id := range slices.Clone(c.open) {
		c.state(us, id, event.StateFinished, &event.Outcome{Prompt: 5, Generated: tokens})
	}
	s := c.store.Snapshot()
	n, l := s.Counts, &s.Latency
	if n.Finished != streams || n.GeneratedTokens != streams*tokens || n.Running != 0 || n.UnmeasuredOpen != 0 || s.Drops.Total() != 0 {
		t.Errorf("counts %+v, dropped %v", n, s.Drops)
	}
	if l.Of[TTFT][metric.Session].Count != streams || l.Of[E2EL][metric.Session].Count != streams || l.Of[TPOT][metric.Session].Count != streams || l.Of[ITL][metric.Session].Count != streams*(tokens-1) {
		t.Errorf("%d TTFT, %d E2EL, %d TPOT, %d ITL", l.Of[TTFT][metric.Session].Count, l.Of[E2EL][metric.Session].Count, l.Of[TPOT][metric.Session].Count, l.Of[ITL][metric.Session].Count)
	}
	if len(s.Requests) != MaxRequests || len(s.Earlier) != streams-MaxRequests || len(c.session.ended) != streams {
		t.Errorf("%d requests in the ring and %d in the past, %d calls of OnRequest", len(s.Requests), len(s.Earlier), len(c.session.ended))
	}
}

// TestPastOfMaxOpen checks that with MaxOpen open requests there still is a past to go back to, within its budget and
// the newest snapshot.
func TestPastOfMaxOpen(t *testing.T) {
	eventtest.SkipUnderRace(t)
	c := newCrowd(1, NewPastBudget(MaxPastBytes))
	for range MaxOpen {
		if c.begin(); c.next%1000 == 0 {
			c.store.Drain()
		}
	}
	past := c.store.Past()
	for i := range 60 {
		c.now += event.Time(sec)
		for k, id := range c.open {
			if c.token(us, id, 1); k%4096 == 0 {
				c.store.Drain()
			}
		}
		from, to := past.Range()
		if past.sum.total() > MaxPastBytes && len(past.kept) > minKept {
			t.Fatalf("%d MB of %d snapshots", past.sum.total()>>20, len(past.kept))
		}
		if i < 40 {
			continue
		}
		if s := past.At(from); s == nil || len(s.Requests) != MaxOpen || to-from < event.Time(8*sec) {
			t.Fatalf("after %d s the past reaches back %v", i, time.Duration(to-from))
		}
	}
}

// TestMaxOpenIsBoundedInBytes checks that MaxOpen running requests take no more memory than documented at the constant,
// however many events each has.
func TestMaxOpenIsBoundedInBytes(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const limit = 6_000 * MaxOpen // bytes
	p := newSession()
	before := heapInUse()
	word := fmt.Sprintf("%0100d", 7)
	for id := range event.RequestID(MaxOpen) {
		p.state(us, id+1, event.StateQueued, &event.Request{Prompt: fmt.Sprintf("%08000d", id), Group: "group", MaxTokens: MaxTokens})
		p.state(us, id+1, event.StateDispatched, nil)
		for range MaxSpans {
			p.stage(id+1, event.StagePrompt, us, 1)
		}
		for layer := range int16(100) {
			p.emit(0, event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: id + 1, Layer: layer, Dur: us})
		}
		p.store.Drain()
	}
	for i := range 100 {
		for id := range event.RequestID(MaxOpen) {
			p.emit(int64(1+(uint64(id)*uint64(i))%97)*us, event.Event{
				Kind: event.KindToken, Req: id + 1, N: 1, Text: word, Top: []event.TopProb{{Text: word}, {Text: word}}, Layer: -1,
			})
			if id%4096 == 0 {
				p.store.Drain()
			}
		}
	}
	s := p.store.Snapshot()
	grown := heapInUse() - before
	t.Logf("%d MB for %d requests, %d bytes each", grown>>20, MaxOpen, grown/MaxOpen)
	if len(s.Requests) != MaxOpen || s.Drops.Total() != 0 || grown > limit {
		t.Errorf("%d requests in %d MB, limit %d; dropped %v", len(s.Requests), grown>>20, limit>>20, s.Drops)
	}
	r := s.Requests[0]
	if r.Omitted.Spans == 0 || len(r.Spans)+r.Omitted.Spans != MaxSpans || !r.Omitted.Layers || !r.Omitted.Prompt || !r.TextCut || r.FirstGap+len(r.Gaps) != 99 || int(r.Tokens[0].Nth) != 100-len(r.Tokens) {
		t.Errorf("omissions are not described: %+v, text cut %v, %d gaps from %d on, %d tokens from %d on",
			r.Omitted, r.TextCut, len(r.Gaps), r.FirstGap, len(r.Tokens), r.Tokens[0].Nth)
	}
	runtime.KeepAlive(p)
}

// BenchmarkSnapshotOfCrowd takes snapshots of 10,000 running requests, of which all or 1 in 100 had a token since the
// previous one.
func BenchmarkSnapshotOfCrowd(b *testing.B) {
	for _, every := range []event.RequestID{1, 100} {
		b.Run(fmt.Sprint("every ", every), func(b *testing.B) {
			p := newSession()
			p.engine(event.CapTokens | event.CapQueue | event.CapStages)
			for id := range event.RequestID(10_000) {
				p.state(us, id+1, event.StateQueued, &event.Request{Prompt: "p"})
				p.state(us, id+1, event.StateDispatched, nil)
				p.stage(id+1, event.StagePrompt, us, 100)
				p.store.Drain()
			}
			token := func(every event.RequestID) {
				for id := event.RequestID(0); id < 10_000; id += every {
					p.token(10*us+int64(id%100)*100, id+1, 1)
				}
				p.store.Drain()
			}
			for range 100 {
				token(1)
			}
			p.store.Snapshot()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				token(every)
				b.StartTimer()
				p.store.Snapshot()
			}
		})
	}
}

// BenchmarkApplyToCrowd measures the cost of a token with 10,000 running requests.
func BenchmarkApplyToCrowd(b *testing.B) {
	p := newSession()
	for id := range event.RequestID(10_000) {
		p.state(us, id+1, event.StateQueued, nil)
		p.token(us, id+1, 1)
		p.store.Drain()
	}
	e := event.Event{Kind: event.KindToken, N: 1, Text: " word", At: p.now}
	b.ReportAllocs()
	for b.Loop() {
		e.At += event.Time(us)
		e.Req = e.Req%10_000 + 1
		p.store.state.apply(&e)
	}
}
