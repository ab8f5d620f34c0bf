package report

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestCollectorStopsAtItsBytes(t *testing.T) {
	r := newRun()
	r.collector.bytes = MaxBytes - 3*weight(&event.Event{Text: "w"}) - 1
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued})
	for i := range int32(8) {
		r.emit(ms, event.Event{Kind: event.KindToken, Req: 1, ID: 5, Index: 2 * i, N: 2, Text: "w"})
	}
	built := r.build(Meta{})
	q := built.Requests[0]
	if len(q.Tokens) != 3 || q.TokensCut != 10 || built.Omitted.Tokens != 10 || q.Text != nil {
		t.Errorf("kept %d, cut %d and %d, text %v; want 3, 10, 10 and none", len(q.Tokens), q.TokensCut, built.Omitted.Tokens, q.Text)
	}
	if q.Generated != 16 {
		t.Errorf("generated %d, want all 16 counted", q.Generated)
	}
}

func TestCollectorStopsAtItsRequests(t *testing.T) {
	r := newRun()
	for id := range event.RequestID(MaxRequests + 5) {
		r.collector.Emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued})
		r.collector.Emit(event.Event{Kind: event.KindToken, Req: id + 1, N: 1})
	}
	built := r.build(Meta{})
	if len(built.Requests) != MaxRequests || built.Omitted.Requests != 5 || built.Omitted.Tokens != 5 {
		t.Errorf("kept %d, cut %+v; want %d, and 5 of each", len(built.Requests), built.Omitted, MaxRequests)
	}
}

func TestTokensOfOneStamp(t *testing.T) {
	r := newRun()
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued})
	r.emit(ms, event.Event{Kind: event.KindToken, Req: 1, ID: -1, N: 3})
	r.emit(9*ms, event.Event{Kind: event.KindToken, Req: 1, ID: -1, Index: 3, N: 3})
	tokens := decoded(t, r.build(Meta{}))["requests"].([]any)[0].(map[string]any)["tokens"].([]any)
	first, second := tokens[0].(map[string]any), tokens[1].(map[string]any)
	if first["gap_s"] != nil || first["id"] != nil || first["n"] != 3.0 || second["gap_s"] != .003 || second["t_s"] != .01 {
		t.Errorf("two stamps of three tokens read %v and %v", first, second)
	}
}

// TestTokensAgreeWithTheStore checks that the listed gaps are those of the store.
func TestTokensAgreeWithTheStore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun()
		r.emit(ms, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued})
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			wait := rapid.Int64Range(-2*ms, 20*ms).Draw(rt, "wait")
			if rapid.Bool().Draw(rt, "paced") {
				r.stage(1, event.StagePace, -1, max(wait, 0)/2, 1)
			}
			r.emit(wait, event.Event{Kind: event.KindToken, Req: 1, N: rapid.Int32Range(-1, 3).Draw(rt, "n")})
		}
		stored := r.store.Snapshot().Requests[0]
		for i, token := range r.collector.order[0].tokens {
			want := stored.Tokens.All()[i]
			if got := max(token.gap, 0); got != want.Gap || token.at != int64(want.At-stored.Enqueued) {
				rt.Fatalf("token %d: %d ns after a gap of %d, the store has %d after %d", i, token.at, got, want.At-stored.Enqueued, want.Gap)
			}
		}
	})
}

func TestCollectorTakesEventsFromMany(t *testing.T) {
	r := newRun()
	var all sync.WaitGroup
	for id := range event.RequestID(4) {
		all.Go(func() {
			for i := range int32(500) {
				r.collector.Emit(event.Event{Kind: event.KindToken, Req: id + 1, At: event.Time(i), Index: i, N: 1})
			}
		})
	}
	all.Wait()
	for _, q := range r.build(Meta{}).Requests {
		if len(q.Tokens) != 500 {
			t.Errorf("request %d has %d tokens, want 500", q.ID, len(q.Tokens))
		}
	}
}
