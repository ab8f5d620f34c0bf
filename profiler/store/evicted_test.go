package store

import (
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// playShortRequest plays a request of two tokens.
func playShortRequest(p *session, id event.RequestID) {
	p.state(ms, id, event.StateQueued, &event.Request{Prompt: "p", Group: "g"})
	p.stage(id, event.StagePrompt, ms, 3)
	p.token(ms, id, 1)
	p.token(ms, id, 1)
	p.state(0, id, event.StateFinished, &event.Outcome{Reason: "stop"})
}

// TestEvictedRequestsAreSlim checks that evicted requests keep their metrics and lose per-token data.
func TestEvictedRequestsAreSlim(t *testing.T) {
	p := newSession()
	for id := range event.RequestID(MaxRequests + 3) {
		playShortRequest(p, id+1)
	}
	s := p.store.Snapshot()
	if len(s.Earlier) != 3 || s.Earlier[0].ID != 1 || s.Earlier[2].ID != 3 {
		t.Fatalf("%d past requests, want 3: ids 1 to 3", len(s.Earlier))
	}
	r, full := s.Earlier[0], s.Requests[0]
	if !r.Slim || len(r.Tokens) != 0 || r.Gaps != nil || r.Text != "" || r.Prompt != "" || r.Layers != nil {
		t.Errorf("per-token data is still kept: %+v", r)
	}
	if r.TTFT != full.TTFT || r.TPOT != full.TPOT || r.ITL != full.ITL || r.Group != "g" || r.Reason != "stop" || len(r.Spans) != 1 || len(r.Parts) != 2 {
		t.Errorf("metrics are missing: %+v", r)
	}
	if full.Slim || len(full.Tokens) != 2 {
		t.Errorf("a request in the ring is slim: %+v", full)
	}
}

// TestPastOfSnapshotIsImmutable checks that later requests do not change a snapshot's past, and that the past is
// bounded.
func TestPastOfSnapshotIsImmutable(t *testing.T) {
	p := newSession()
	for id := range event.RequestID(MaxRequests + 2) {
		playShortRequest(p, id+1)
	}
	first := p.store.Snapshot()
	before := slices.Clone(first.Earlier)
	for id := range event.RequestID(MaxEarlier + MaxEarlier/2) {
		playShortRequest(p, id+MaxRequests+10)
		if id%1000 == 0 {
			p.store.Snapshot()
		}
	}
	if !slices.Equal(first.Earlier, before) {
		t.Error("the past of an earlier snapshot has changed")
	}
	last := p.store.Snapshot().Earlier
	if len(last) > MaxEarlier || len(last) < MaxEarlier/2 {
		t.Errorf("%d past requests are kept", len(last))
	}
	if !slices.IsSortedFunc(last, func(a, b *Request) int { return int(a.Enqueued - b.Enqueued) }) {
		t.Error("the past is out of order")
	}
}

func TestSpansOfStages(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	start := p.now
	p.stage(1, event.StageQueue, 3*ms, 0)
	p.emit(2*ms, event.Event{Kind: event.KindStage, Req: 1, Layer: -1, Dur: ms, Text: "rerank"})
	p.emit(ms, event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: 1, Layer: 4, Dur: ms})
	p.stage(1, event.StagePrompt, 5*ms, 7)
	p.token(ms, 1, 1)
	p.stage(1, event.StagePace, ms, 0)
	r := p.request(t, 1)
	at := func(n int64) event.Time { return start + event.Time(n*ms) }
	want := []StageSpan{
		{Stage: event.StageQueue, Layer: -1, Start: at(0), End: at(3)},
		{Name: "rerank", Layer: -1, Start: at(4), End: at(5)},
		{Stage: event.StagePrompt, Layer: -1, Start: at(6), End: at(11), Tokens: 7},
	}
	if !slices.Equal(r.Spans, want) {
		t.Errorf("spans %+v, want %+v", r.Spans, want)
	}
	if other := r.Parts[len(r.Parts)-1]; int64(other.Dur) != 4*ms {
		t.Errorf("other is %v, want 4 ms, engine-specific stages included", other.Dur)
	}
	for range 2 * MaxSpans {
		p.stage(1, event.StagePrompt, ms, 1)
	}
	if n := len(p.request(t, 1).Spans); n != MaxSpans {
		t.Errorf("%d spans are kept", n)
	}
}

// TestTokensAreNumbered checks that tokens and stalls have the number of tokens before them.
func TestTokensAreNumbered(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	for range 12 {
		p.token(ms, 1, 2)
	}
	p.token(40*ms, 1, 3)
	r := p.request(t, 1)
	last := r.Tokens[len(r.Tokens)-1]
	if last.Nth != 24 || last.N != 3 || r.Generated != 27 {
		t.Errorf("the last stamp covers %d tokens from %d on, of %d", last.N, last.Nth, r.Generated)
	}
	if len(r.Stalls) != 1 || r.Stalls[0].Index != int(last.Nth) {
		t.Errorf("stalls %+v, want one at token %d", r.Stalls, last.Nth)
	}
}

// TestStallCauseOfChunks checks that the cause of a stall is looked up in the whole gap before a chunk of tokens, not
// in one token's part of it.
func TestStallCauseOfChunks(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	for range 12 {
		p.token(6*ms, 1, 3)
	}
	p.state(0, 2, event.StateQueued, nil)
	p.state(0, 2, event.StateDispatched, nil)
	p.step(30*ms, 1, 400)
	p.token(20*ms, 1, 3)
	r := p.request(t, 1)
	if len(r.Stalls) != 1 || r.Stalls[0].Words() != "while #2's prompt was processed" {
		t.Errorf("stalls %+v", r.Stalls)
	}
}

// TestEndedRequestsCauseNoStall checks that a request that failed before its first token is not the cause of later
// stalls.
func TestEndedRequestsCauseNoStall(t *testing.T) {
	p := newSession()
	for _, id := range []event.RequestID{1, 2} {
		p.state(0, id, event.StateQueued, nil)
		p.state(0, id, event.StateDispatched, nil)
	}
	p.state(0, 2, event.StateFailed, &event.Outcome{Reason: "out of memory"})
	for range 12 {
		p.token(6*ms, 1, 1)
	}
	p.step(40*ms, 1, 400)
	p.token(20*ms, 1, 1)
	if r := p.request(t, 1); len(r.Stalls) != 1 || r.Stalls[0].Cause != verdict.PromptOfOther || r.Stalls[0].By != 0 {
		t.Errorf("stalls %+v", r.Stalls)
	}
}
