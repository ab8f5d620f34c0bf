package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestTokenGap checks gaps with pacing and with shared stamps.
func TestTokenGap(t *testing.T) {
	for _, c := range []struct {
		since, paced int64
		n            int
		gap, within  int64
	}{
		{100, 0, 1, 100, 0},
		{100, 30, 1, 70, 30},
		{100, 0, 4, 25, 0},
		{100, 40, 4, 15, 40},
		{100, 130, 2, 0, 100}, // the pacing began before the previous token was received
		{0, 0, 3, 0, 0},
	} {
		if gap, within := tokenGap(c.since, c.paced, c.n); gap != c.gap || within != c.within {
			t.Errorf("tokenGap(%d, %d, %d) = %d, %d, want %d, %d", c.since, c.paced, c.n, gap, within, c.gap, c.within)
		}
	}
}

// TestLostTokens checks what is reported of answers of which parts were not received.
func TestLostTokens(t *testing.T) {
	p := newSession()
	token := func(at int64, id event.RequestID, lost bool) {
		p.emit(at, event.Event{Kind: event.KindToken, Req: id, ID: -1, N: 1, Index: -1, Lost: lost})
	}
	p.state(0, 1, event.StateQueued, &event.Request{RTT: int64(2 * ms)})
	token(10*ms, 1, false)
	token(10*ms, 1, false)
	token(70*ms, 1, true)
	token(10*ms, 1, false)
	p.state(0, 1, event.StateFinished, &event.Outcome{Generated: 9, Torn: true, AnyLater: true})
	r := p.request(t, 1)
	if r.ITL.Count != 2 || r.ITL.Max != int64(10*ms) || !r.TTFT.OK() || r.TPOT.OK() || !r.E2EL.OK() || r.Generated != 9 || r.RTT.V != 0.002 {
		t.Errorf("with a hole: %+v", r)
	}
	p.state(0, 5, event.StateQueued, nil)
	token(10*ms, 5, false)
	token(70*ms, 5, true)
	p.state(0, 5, event.StateFinished, &event.Outcome{})
	if r := p.request(t, 5); r.TPOT.OK() || r.TPS.OK() || r.DecodeRate.OK() || !r.E2EL.OK() || !r.GeneratedAtLeast() {
		t.Errorf("with a hole, and an end that counts no tokens: %+v", r)
	}
	p.state(0, 2, event.StateQueued, nil)
	token(10*ms, 2, true)
	token(10*ms, 2, false)
	p.state(0, 2, event.StateFinished, &event.Outcome{Generated: 2, Torn: true, AtLeast: true})
	if r := p.request(t, 2); r.TTFT.OK() || !r.MissedStart || r.ITL.Count != 1 || r.TPS.OK() || r.RTT.OK() {
		t.Errorf("without the first token: %+v", r)
	}
	p.state(0, 3, event.StateQueued, nil)
	token(10*ms, 3, false)
	p.state(20*ms, 3, event.StateFinished, &event.Outcome{Generated: 1, AnyEnd: true})
	if r := p.request(t, 3); !r.TTFT.OK() || r.E2EL.OK() || r.TPS.OK() {
		t.Errorf("without its end: %+v", r)
	}
	before := p.store.Snapshot().Counts.GeneratedTokens
	p.state(0, 4, event.StateDispatched, &event.Request{})
	token(10*ms, 4, true)
	p.state(20*ms, 4, event.StateFinished, &event.Outcome{Generated: 500, Torn: true, AnyLater: true})
	if r := p.request(t, 4); r.TTFT.OK() || r.Generated != 500 || p.store.Snapshot().Counts.GeneratedTokens != before+1 {
		t.Errorf("begun before: %+v", r)
	}
}
