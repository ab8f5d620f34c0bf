package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

func TestOutcomesAreCountedByState(t *testing.T) {
	p := newSession()
	for id, how := range []event.State{event.StateFinished, event.StateFinished, event.StateCancelled, event.StateFailed, event.StateDispatched, event.StateQueued} {
		req := event.RequestID(id + 1)
		p.state(ms, req, event.StateQueued, nil)
		if how == event.StateQueued {
			continue
		}
		p.state(ms, req, event.StateDispatched, nil)
		p.token(ms, req, 1)
		p.token(ms, req, 1)
		if how.Final() {
			p.state(0, req, how, &event.Outcome{Reason: how.String(), Prompt: 5, Cached: 1, Padding: 3, Generated: 2})
		}
	}
	s := p.store.Snapshot()
	c := s.Counts
	if c.Finished != 2 || c.Cancelled != 1 || c.Failed != 1 || c.Running != 1 || c.Queued != 1 {
		t.Errorf("counts %+v", c)
	}
	if c.PromptTokens != 20 || c.CachedTokens != 4 || c.PadTokens != 12 || c.GeneratedTokens != 10 {
		t.Errorf("tokens %d, %d, %d and %d; want 20, 4, 12 and 10", c.PromptTokens, c.CachedTokens, c.PadTokens, c.GeneratedTokens)
	}
	if l := &s.Latency; l.Of[E2EL][metric.Session].Count != 2 || l.Of[TPOT][metric.Session].Count != 2 || l.Of[ITL][metric.Session].Count != 5 || l.Of[TTFT][metric.Session].Count != 5 {
		t.Errorf("%d E2EL and %d TPOT, want those of the 2 finished; %d ITL and %d TTFT, want those of all",
			l.Of[E2EL][metric.Session].Count, l.Of[TPOT][metric.Session].Count, l.Of[ITL][metric.Session].Count, l.Of[TTFT][metric.Session].Count)
	}
	if s.Current == nil || s.Current.ID != 5 {
		t.Errorf("current is %+v, want the running request 5", s.Current)
	}
	if failed := s.Requests[2]; failed.ID != 4 || failed.State != event.StateFailed || failed.Reason != "failed" {
		t.Errorf("the third newest is %d, %v %q; want 4, failed", failed.ID, failed.State, failed.Reason)
	}
}

// TestPromptsAreCountedWithTheFirstToken checks that a prompt is in the totals once its request generates, and at the end
// with the number that the engine then reports.
func TestPromptsAreCountedWithTheFirstToken(t *testing.T) {
	p := newSession()
	total := func(want uint64) {
		t.Helper()
		if got := p.store.Snapshot().Counts.PromptTokens; got != want {
			t.Errorf("%d prompt tokens, want %d", got, want)
		}
	}
	p.state(ms, 1, event.StateQueued, &event.Request{PromptTokens: 7})
	p.state(ms, 1, event.StateDispatched, nil)
	total(0)
	p.token(ms, 1, 1)
	total(7)
	p.token(ms, 1, 1)
	total(7)
	p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 6, Generated: 2})
	total(6)
}

// TestQueueTimeOfEveryOutcome checks that queue time counts each request that left the queue, once.
func TestQueueTimeOfEveryOutcome(t *testing.T) {
	p := newSession()
	p.engine(event.CapQueue)
	for i, how := range []event.State{event.StateFailed, event.StateCancelled, event.StateFinished} {
		for _, tokens := range []int32{0, 1} {
			id := event.RequestID(2*i + int(tokens) + 1)
			p.state(0, id, event.StateQueued, nil)
			p.state(ms, id, event.StateDispatched, nil)
			if tokens > 0 {
				p.token(ms, id, tokens)
			}
			p.state(0, id, how, &event.Outcome{})
		}
	}
	p.state(0, 7, event.StateQueued, nil)
	p.state(9*ms, 7, event.StateCancelled, &event.Outcome{}) // in the queue
	if got := p.store.Snapshot().Latency.Of[STIL][metric.Session]; got.Count != 6 || got.Max != ms {
		t.Errorf("queue times %+v, want 6 of 1 ms", got)
	}
}

// TestDroppedEventsKeepTotalsRight checks that totals come from outcomes, and that times without a known start are
// absent.
func TestDroppedEventsKeepTotalsRight(t *testing.T) {
	p := newSession()
	p.engine(event.CapQueue)
	p.state(0, 1, event.StateDispatched, nil) // its StateQueued was dropped
	p.token(5*ms, 1, 1)
	p.token(4*ms, 1, 1)
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 7, Generated: 6}) // so were four tokens
	p.state(ms, 2, event.StateFinished, &event.Outcome{Prompt: 7, Generated: 6}) // of this one, all other events were
	s := p.store.Snapshot()
	if s.Counts.Finished != 2 || s.Counts.GeneratedTokens != 12 || s.Counts.PromptTokens != 14 || len(s.Requests) != 1 {
		t.Errorf("%d finished with %d and %d tokens, %d kept; want 2 with 14 and 12, one kept",
			s.Counts.Finished, s.Counts.PromptTokens, s.Counts.GeneratedTokens, len(s.Requests))
	}
	r := s.Requests[0]
	for name, got := range map[string]event.Reading{"STIL": r.STIL, "TTFT": r.TTFT, "E2EL": r.E2EL, "TPS": r.TPS, "overall": r.Overall} {
		want(t, name, got, "not reported")
	}
	if s.Latency.Of[TTFT][metric.Session].Count != 0 || s.Latency.Of[STIL][metric.Session].Count != 0 || s.Latency.Of[E2EL][metric.Session].Count != 0 {
		t.Errorf("latencies without a known start were recorded: %+v", s.Latency.Of[TTFT][metric.Session])
	}
	if r.Generated != 6 || len(r.Parts) != 0 || r.HitTarget {
		t.Errorf("%d tokens, parts %v, target met %v; want 6, none, no", r.Generated, r.Parts, r.HitTarget)
	}
}

// TestEventsBeforeClockHaveNoTimes checks events from before the clock's epoch, as a late joiner receives: their order
// is known, their times are not.
func TestEventsBeforeClockHaveNoTimes(t *testing.T) {
	p := newSession()
	p.engine(event.CapQueue | event.CapTokens)
	early := func(e event.Event) {
		e.Req, e.Layer = 1, -1
		p.store.Emit(e)
	}
	early(event.Event{Kind: event.KindRequest, At: event.Time(-9 * sec), State: event.StateQueued})
	early(event.Event{Kind: event.KindRequest, At: event.Time(-8 * sec), State: event.StateDispatched})
	early(event.Event{Kind: event.KindToken, At: event.Time(-7 * sec), N: 1})
	early(event.Event{Kind: event.KindToken, At: event.Time(-1 * sec), N: 500})
	first := p.store.Snapshot()
	if c, l := first.Counts, first.Latency; c.GeneratedTokens != 0 || l.Of[ITL][metric.Session].Count != 0 || l.Of[TTFT][metric.Session].Count != 0 {
		t.Errorf("counted %d tokens, %d gaps, %d TTFTs from before the session, want none", c.GeneratedTokens, l.Of[ITL][metric.Session].Count, l.Of[TTFT][metric.Session].Count)
	}
	p.token(5*ms, 1, 1)
	for range 3 {
		p.token(4*ms, 1, 1)
	}
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 7, Generated: 505})
	r := p.request(t, 1)
	for name, got := range map[string]event.Reading{
		"STIL": r.STIL, "TTFT": r.TTFT, "E2EL": r.E2EL, "TPS": r.TPS, "overall": r.Overall,
		"prefill": r.Prefill, "prefill rate": r.PrefillRate, "decode": r.Decode, "TPOT": r.TPOT, "decode rate": r.DecodeRate,
	} {
		want(t, name, got, "not reported")
	}
	if !r.MissedStart || r.Generated != 505 || r.ITL.Count != 3 || r.ITL.Min != 4*ms || r.ITL.Max != 4*ms || len(r.Stalls) != 0 || r.Dominant.Share != 0 {
		t.Errorf("late %v, %d tokens, ITL %+v, %d stalls; want 505 tokens and three gaps of 4 ms", r.MissedStart, r.Generated, r.ITL, len(r.Stalls))
	}
	s := p.store.Snapshot()
	if s.Counts.GeneratedTokens != 4 || s.Latency.Of[TPOT][metric.Session].Count != 0 || s.Latency.Of[E2EL][metric.Session].Count != 0 {
		t.Errorf("%d tokens in the session, want 4, without TPOT and E2EL", s.Counts.GeneratedTokens)
	}
}

func TestEndedRequestsAreFinal(t *testing.T) {
	p := newSession()
	playTypical(p, nil)
	endTypical(p, event.StateFinished, "stop")
	before := *p.request(t, 1)
	p.token(ms, 1, 1)
	p.stage(1, event.StagePrompt, ms, 5)
	p.state(ms, 1, event.StateCancelled, nil)
	p.state(ms, 1, event.StateQueued, nil)
	after := p.request(t, 1)
	if after.Generated != before.Generated || after.State != before.State || after.E2EL != before.E2EL {
		t.Errorf("%+v became %+v", before, *after)
	}
	if c := p.store.Snapshot().Counts; c.Finished != 1 || c.Cancelled != 0 || c.GeneratedTokens != 4 {
		t.Errorf("counts %+v", c)
	}
}

func TestGroups(t *testing.T) {
	p := newSession()
	play := func(id event.RequestID, group string, ttft int64) {
		p.state(ms, id, event.StateQueued, &event.Request{Group: group})
		p.token(ttft, id, 1)
		p.token(10*ms, id, 1)
		p.state(0, id, event.StateFinished, &event.Outcome{Prompt: 1, Generated: 2})
	}
	play(1, "b", 10*ms) // 2 tokens in 20 ms
	play(2, "b", 30*ms) // 2 tokens in 40 ms
	play(3, "a", 40*ms) // 2 tokens in 50 ms
	groups := p.store.Snapshot().Counts.Groups
	if len(groups) != 2 || groups[0].Name != "a" || groups[1].Requests != 2 || groups[1].Generated != 4 {
		t.Fatalf("groups %+v", groups)
	}
	want(t, "TPS of a", groups[0].TPS, 2/.05)
	want(t, "TPS of b", groups[1].TPS, 4/.06)
	play(4, "b", 300*ms) // later than the target of 200 ms
	b := p.store.Snapshot().Counts.Groups[1]
	if b.TTFT.Count != 3 || b.TTFT.Max != 300*ms || b.TPOT.Count != 3 || b.TPOT.P99 != 10*ms {
		t.Errorf("TTFT of b %+v, TPOT %+v", b.TTFT, b.TPOT)
	}
	want(t, "b within its targets", b.Met, 2/3.)
	for id := range event.RequestID(MaxGroups + 3) {
		play(10+id, string(rune(0x100+id)), ms)
	}
	if c := p.store.Snapshot().Counts; len(c.Groups) != MaxGroups || c.OmittedGroups != 5 {
		t.Errorf("%d groups and %d more, want %d and 5", len(c.Groups), c.OmittedGroups, MaxGroups)
	}
}

func TestGoodput(t *testing.T) {
	p := newSession()
	want(t, "goodput before the first end", p.store.Snapshot().Latency.Goodput, "not yet")
	for id, ttft := range []int64{199 * ms, 201 * ms, 200 * ms} {
		req := event.RequestID(id + 1)
		p.state(0, req, event.StateQueued, nil)
		p.token(ttft, req, 1)
		p.state(0, req, event.StateFinished, nil)
	}
	p.state(0, 9, event.StateQueued, nil)
	p.token(ms, 9, 1)
	p.state(0, 9, event.StateCancelled, nil) // in time, but not finished
	p.now += event.Time(399 * ms)            // 1 s in all
	want(t, "goodput", p.store.Snapshot().Latency.Goodput, 2.)
}

func TestEvictedRequestsAreCounted(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil) // stays open
	for id := range event.RequestID(MaxRequests + 9) {
		p.state(0, id+2, event.StateQueued, nil)
		p.token(us, id+2, 1)
		p.state(0, id+2, event.StateFinished, nil)
	}
	s := p.store.Snapshot()
	if len(s.Requests) != 1+MaxRequests || s.Counts.Finished != MaxRequests+9 || s.Counts.OmittedRequests != 9 {
		t.Errorf("%d kept, %d finished, %d evicted", len(s.Requests), s.Counts.Finished, s.Counts.OmittedRequests)
	}
	if oldest := s.Requests[len(s.Requests)-1]; oldest.ID != 1 {
		t.Errorf("the oldest request is %d, want 1, which is still open", oldest.ID)
	}
}
