package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// playRequest plays a request with the given TTFT and gaps in ns.
func (p *session) playRequest(id event.RequestID, ttft, gap int64, tokens int) {
	p.state(0, id, event.StateQueued, &event.Request{})
	p.state(0, id, event.StateDispatched, nil)
	p.token(ttft, id, 1)
	for range tokens - 1 {
		p.token(gap, id, 1)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Prompt: 7, Generated: tokens})
}

func TestChangesSince(t *testing.T) {
	p := newSession()
	p.playRequest(1, 10*ms, ms, 101)
	then := p.store.Snapshot()
	p.playRequest(2, 40*ms, 3*ms, 51)
	p.emit(0, event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 3}})
	d := p.store.Snapshot().ChangesSince(then)
	if d.Restarted || d.Ended != (Ends{Finished: 1}) || d.EndedBefore != (Ends{Finished: 1}) || d.Generated != 51 || d.GeneratedBefore != 101 || d.Dropped != 3 {
		t.Errorf("changes %+v", d)
	}
	near := func(name string, got int64, want time.Duration) {
		if diff := got - int64(want); max(diff, -diff) > int64(want)/32 {
			t.Errorf("%s is %v, want %v", name, time.Duration(got), want)
		}
	}
	near("TTFT before", d.TTFT.Before.P50, 10*time.Millisecond)
	near("TTFT since", d.TTFT.Since.P50, 40*time.Millisecond)
	near("ITL before", d.ITL.Before.P99, time.Millisecond)
	near("ITL since", d.ITL.Since.P50, 3*time.Millisecond)
	near("TPOT since", d.TPOT.Since.P50, 3*time.Millisecond)
	want(t, "tokens/s since", d.Rate, 51/d.Elapsed.Seconds())
	if back := then.ChangesSince(p.store.Snapshot()); !back.Restarted {
		t.Error("comparing with a later snapshot is not refused")
	}
}

func TestDriftSince(t *testing.T) {
	p := newSession()
	zero := []uint64{0, 0, 0, 0}
	p.emitPicks(2, 2, zero, []uint64{4, 0, 2, 2}, [2]uint64{metric.Decode: 4})
	then := p.store.Snapshot()
	if d := then.ChangesSince(then); d.MostDrifted >= 0 || d.Drift[0].OK() {
		t.Errorf("drift without new picks: %+v", d.Drift)
	}
	p.emitPicks(2, 2, zero, []uint64{4, 4, 3, 3}, [2]uint64{metric.Decode: 6})
	d := p.store.Snapshot().ChangesSince(then)
	if d.MostDrifted != 0 || !d.Drifted || d.Drift[0].V != 1 || d.Drift[1].V != 0 {
		t.Errorf("layer %d has the most drift of %+v", d.MostDrifted, d.Drift)
	}
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{9, 9}, [2]uint64{metric.Decode: 9})
	if d := p.store.Snapshot().ChangesSince(then); d.Drift != nil {
		t.Errorf("drift against another model: %+v", d.Drift)
	}
}

// A change is significant by the number of requests, and stalls by the number of tokens.
func TestSignificantChanges(t *testing.T) {
	changed := func(before, since int) *Changes {
		p := newSession()
		id := event.RequestID(0)
		for range before {
			id++
			p.playRequest(id, 10*ms, ms, 51)
		}
		then := p.store.Snapshot()
		for range since {
			id++
			p.playRequest(id, 20*ms, 2*ms, 51)
		}
		return p.store.Snapshot().ChangesSince(then)
	}
	for _, c := range []struct {
		before, since int
		significant   bool
	}{{7, 7, true}, {6, 7, false}, {7, 6, false}} {
		if d := changed(c.before, c.since); d.TTFT.P50 != c.significant || d.TPOT.P50 != c.significant || d.ITL.P50 != c.significant || d.ITL.P99 {
			t.Errorf("%d requests before and %d since: %+v", c.before, c.since, d)
		}
	}
	for _, c := range []struct {
		before, since, tokensBefore, tokens uint64
		more                                bool
	}{
		{5, 15, 1000, 1000, false},
		{4, 19, 1000, 1000, true},
		{0, 9, 1000, 1000, false},
		{0, 10, 1000, 1000, true},
		{0, 10, 100, 1000, false},
		{9, 19, 1000, 0, false},
	} {
		d := Changes{StallsBefore: c.before, Stalls: c.since, GeneratedBefore: c.tokensBefore, Generated: c.tokens}
		if d.MoreStalls() != c.more {
			t.Errorf("more stalls: %v for %+v", !c.more, c)
		}
	}
}
