package store

import (
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestCacheMisses checks what is missed of prompts of 400 tokens, of which the engine computed some in 100 ms.
func TestCacheMisses(t *testing.T) {
	stamp := event.Reuse{With: 1, Kind: event.BreakTimestamp, Place: "messages[0].content", At: 7, Common: 100, Same: 800, Bytes: 1000}
	whole := event.Reuse{With: 1, Kind: event.BreakNone, Common: 900, Bytes: 1000}
	var all []*Request
	for i, c := range []struct {
		cached    int
		anyCached bool
		reuse     event.Reuse
		kind      event.BreakKind
		tokens    int
		lost      time.Duration
	}{
		{40, false, stamp, event.BreakTimestamp, 320, 100 * time.Millisecond * 320 / 360},
		{360, false, stamp, event.BreakTimestamp, 40, 100 * time.Millisecond},
		{400, false, stamp, 0, 0, 0},
		{40, true, stamp, 0, 0, 0}, // not known to be computed
		{40, false, whole, event.BreakNone, 320, 100 * time.Millisecond * 320 / 360},
		{340, false, whole, 0, 0, 0}, // within the slack
		{0, false, event.Reuse{}, 0, 0, 0},
		{0, false, event.Reuse{With: 1, Kind: event.BreakMessage, Common: 10, Same: 20, Bytes: 1000}, 0, 0, 0}, // little in common
	} {
		p := newSession()
		p.engine(event.CapTokens | event.CapStages)
		p.state(0, 9, event.StateQueued, nil)
		p.stage(9, event.StagePrompt, 100*ms, 400)
		p.token(0, 9, 1)
		if m := p.request(t, 9).CacheMiss(); m.Tokens != 0 {
			t.Errorf("%d: missed %+v before the end", i, m)
		}
		p.state(0, 9, event.StateFinished, &event.Outcome{Reason: "stop", Prompt: 400, Cached: c.cached, AnyCached: c.anyCached, Generated: 1, Reuse: c.reuse})
		r := p.request(t, 9)
		if m := r.CacheMiss(); m.Kind != c.kind || m.Tokens != c.tokens || m.Lost != c.lost {
			t.Errorf("%d: missed %+v, want %v of %d tokens, %v", i, m, c.kind, c.tokens, c.lost)
		}
		all = append(all, r)
	}
	m := SumCacheMisses(slices.Values(all))
	if m.Prefill != 800*time.Millisecond || len(m.Kinds) != 2 {
		t.Fatalf("%+v", m)
	}
	if k := m.Kinds[0]; k.Kind != event.BreakTimestamp || k.Requests != 2 || k.Tokens != 360 || k.Place != stamp.Place || k.Lost+m.Kinds[1].Lost != m.Lost {
		t.Errorf("%+v", k)
	}
}

// A prompt cache that costs most of prefill stands in the insights, and degrades the health.
func TestABrokenPromptCacheIsAVerdict(t *testing.T) {
	stamp := event.Reuse{With: 1, Kind: event.BreakTimestamp, Place: "messages[0].content", At: 7, Common: 100, Same: 800, Bytes: 1000}
	p := newSession()
	p.engine(event.CapTokens | event.CapStages)
	for id := event.RequestID(1); id <= 14; id++ { // 3 s of them settle the verdict
		p.state(0, id, event.StateQueued, nil)
		p.stage(id, event.StagePrompt, 100*ms, 400)
		p.token(0, id, 1)
		p.state(0, id, event.StateFinished, &event.Outcome{Reason: "stop", Prompt: 400, Cached: 40, Generated: 1, Reuse: stamp})
		p.now += event.Time(500 * ms)
	}
	s := p.store.Snapshot()
	i := slices.IndexFunc(s.Verdicts, func(v verdict.Verdict) bool { return v.Topic == "prompt cache" })
	if i < 0 || s.Health.Status != verdict.Degraded || s.Health.Verdict.Topic != "prompt cache" {
		t.Fatalf("health %+v with the verdicts %+v", s.Health, s.Verdicts)
	}
	if v := s.Verdicts[i]; v.Text != "Cache misses are 89 % of prefill, 1.24 s in 14 requests of the last minute: a timestamp differs" || v.Evidence != "messages[0].content, character 7" {
		t.Errorf("%+v", v)
	}
}
