package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestUnstreamedResponse checks a response without token events: E2EL is known, TTFT and TPOT are not.
func TestUnstreamedResponse(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 10e9 }})
	s.Emit(event.Event{Kind: event.KindRequest, At: 1e9, Req: 1, State: event.StateQueued, Data: &event.Request{}})
	s.Emit(event.Event{Kind: event.KindRequest, At: 3e9, Req: 1, State: event.StateFinished, Data: &event.Outcome{Prompt: 10, Generated: 30}})
	r := s.Snapshot().Requests[0]
	if r.E2EL.V != 2 || r.TPS.V != 15 || r.Overall.V != 20 {
		t.Errorf("E2EL %v, TPS %v, overall %v; want 2 s, 15 and 20 tokens/s", r.E2EL, r.TPS, r.Overall)
	}
	if r.TTFT.Origin != event.NotReported || r.TPOT.Origin != event.NotReported {
		t.Errorf("TTFT %v, TPOT %v, want not reported", r.TTFT, r.TPOT)
	}
	if x := s.Snapshot().Throughput; x.TTPS.V != x.SessionTTPS.V || x.TTPS.V == 0 {
		t.Errorf("TTPS %v, of the session %v, want the same", x.TTPS, x.SessionTTPS)
	}
}

// TestUnknownPromptTokens checks that counts that a server does not report are absent, not 0, in requests and in totals, and that a total with
// such a request is a lower bound.
func TestUnknownPromptTokens(t *testing.T) {
	p := newSession()
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy", Caps: event.CapTokens, State: event.EngineReady}})
	end := func(id event.RequestID, how event.State, o event.Outcome) {
		p.state(0, id, event.StateQueued, nil)
		if o.Generated > 0 {
			p.token(ms, id, int32(o.Generated))
		}
		p.state(ms, id, how, &o)
	}
	end(1, event.StateFinished, event.Outcome{Prompt: 12, Generated: 1})
	end(2, event.StateFailed, event.Outcome{Reason: "refused"}) // no tokens at all
	v := p.store.Snapshot()
	if got := v.Totals(); got.Prompt.V != 12 || !got.Cached.OK() {
		t.Errorf("with known counts: %+v", got)
	}
	if v.Throughput.Prefill.Origin != event.NotReported {
		t.Errorf("prefill %v of an engine that times no prompts", v.Throughput.Prefill)
	}
	end(3, event.StateFinished, event.Outcome{Generated: 1})
	got := p.store.Snapshot().Totals()
	if got.Prompt.V != 12 || !got.PromptAtLeast || !got.CachedAtLeast {
		t.Errorf("prompt tokens %v, %v and %v that they are a lower bound, want 12 or more", got.Prompt, got.PromptAtLeast, got.CachedAtLeast)
	}
	for name, r := range map[string]event.Reading{
		"cached": got.Cached, "padding": got.Padding, "steps": got.Steps, "overall": p.request(t, 3).Overall,
	} {
		if r.Origin != event.NotReported {
			t.Errorf("%s: %v, want not reported", name, r)
		}
	}
}
