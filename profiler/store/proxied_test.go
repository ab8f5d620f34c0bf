package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestStallBesideWaitingRequest checks that a stall names the request that waited for its first token meanwhile, if the
// source reports neither when it dispatches nor forward passes, as a proxy.
func TestStallBesideWaitingRequest(t *testing.T) {
	for name, c := range map[string]struct {
		caps event.Caps
		sent int64 // of request 2, before the end of the gap
		want verdict.Cause
	}{
		"during the gap":         {event.CapTokens, 80 * ms, verdict.PromptOfOther},
		"at its end only":        {event.CapTokens, 10 * ms, verdict.Unknown},
		"dispatches are visible": {event.CapTokens | event.CapQueue, 80 * ms, verdict.Unknown},
	} {
		p := newSession()
		p.engine(c.caps)
		p.state(ms, 1, event.StateQueued, nil)
		for range StallSamples + 2 {
			p.token(10*ms, 1, 1)
		}
		p.state(100*ms-c.sent, 2, event.StateQueued, nil)
		p.token(c.sent, 1, 1)
		if r := p.request(t, 1); len(r.Stalls) != 1 || r.Stalls[0].Cause != c.want || c.want == verdict.PromptOfOther && r.Stalls[0].By != 2 {
			t.Errorf("%s: stalls %+v, want %v", name, r.Stalls, c.want)
		}
	}
}

// TestColdIsKnownAtTheEnd checks that a request whose end says whether it is cold counts as that only, once.
func TestColdIsKnownAtTheEnd(t *testing.T) {
	p := newSession()
	for id, cold := range []bool{true, false} {
		req := event.RequestID(id + 1)
		p.state(ms, req, event.StateQueued, &event.Request{ColdLater: true})
		p.token(10*ms, req, 1)
		if l := p.store.Snapshot().Latency; l.Of[TTFT][metric.Session].Count+l.Of[ColdTTFT][metric.Session].Count != uint64(id) {
			t.Errorf("before the end of request %d: %+v", req, l.Of[TTFT][metric.Session])
		}
		p.state(ms, req, event.StateFinished, &event.Outcome{Generated: 1, Cold: cold})
		if r := p.request(t, req); r.Cold != cold || r.ColdLater {
			t.Errorf("request %d: cold %v", req, r.Cold)
		}
	}
	if l := p.store.Snapshot().Latency; l.Of[TTFT][metric.Session].Count != 1 || l.Of[ColdTTFT][metric.Session].Count != 1 {
		t.Errorf("%d warm, %d cold", l.Of[TTFT][metric.Session].Count, l.Of[ColdTTFT][metric.Session].Count)
	}
}

// TestUnknownCachedTokens checks that what depends on a count of cached tokens is absent where that is unknown.
func TestUnknownCachedTokens(t *testing.T) {
	p := newSession()
	p.state(ms, 1, event.StateQueued, nil)
	p.token(10*ms, 1, 1)
	p.stage(1, event.StagePrompt, 2*ms, 0)
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 122, AnyCached: true, Generated: 1})
	r, s := p.request(t, 1), p.store.Snapshot()
	if r.PrefillRate.OK() || s.Totals().Cached.OK() || s.Throughput.Prefill.OK() || s.Counts.PromptTokens != 122 {
		t.Errorf("rate %v, cached %v, prefill %v, %d prompt tokens", r.PrefillRate, s.Totals().Cached, s.Throughput.Prefill, s.Counts.PromptTokens)
	}
}
