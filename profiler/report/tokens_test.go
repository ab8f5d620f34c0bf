package report

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestTokensWithoutRoom checks that a request has its last tokens if there is no room for all, and counts the others.
func TestTokensWithoutRoom(t *testing.T) {
	r := runKeeping(64 << 10)
	r.emit(ms, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued})
	const tokens = 2 * store.MaxTokens
	for i := range int32(tokens) {
		r.emit(ms, event.Event{Kind: event.KindToken, Req: 1, ID: 5, Index: 2 * i, N: 2, Text: "w"})
	}
	built := r.build(Meta{})
	q := built.Requests[0]
	if n := len(q.Tokens); n == 0 || n > store.MaxTokens || int(q.TokensCut) != 2*(tokens-n) || built.Omitted.Tokens != q.TokensCut || q.Text != nil {
		t.Errorf("kept %d, cut %d and %d, text %v", len(q.Tokens), q.TokensCut, built.Omitted.Tokens, q.Text)
	}
	if last := q.Tokens[len(q.Tokens)-1]; q.Generated != 2*tokens || last.Index != 2*(tokens-1) {
		t.Errorf("generated %d, last %+v, want all counted and the last ones kept", q.Generated, last)
	}
}

// TestRequestsBeyondTheLimit checks that requests beyond the limit are counted, with their tokens.
func TestRequestsBeyondTheLimit(t *testing.T) {
	r := newRun()
	for id := range event.RequestID(MaxRequests + 5) {
		r.emit(ms, event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued})
		r.emit(0, event.Event{Kind: event.KindToken, Req: id + 1, N: 1})
		r.emit(0, event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateFinished})
		if id%1000 == 0 {
			r.store.Drain()
		}
	}
	built := r.build(Meta{})
	if len(built.Requests) != MaxRequests || built.Omitted.Requests != 5 || built.Omitted.Tokens != 5 || built.Totals.Finished.V != MaxRequests+5 {
		t.Errorf("%d requests of %v, cut %+v; want %d, and 5 of each", len(built.Requests), built.Totals.Finished, built.Omitted, MaxRequests)
	}
	for i, q := range built.Requests {
		if q.ID != event.RequestID(i+1) || len(q.Tokens) != 1 {
			t.Fatalf("request %d is #%d with %d tokens", i, q.ID, len(q.Tokens))
		}
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
