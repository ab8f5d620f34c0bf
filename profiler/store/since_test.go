package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// ask lets a request wait, and generate tokens with such a gap between them.
func (p *play) ask(id event.RequestID, ttft, gap int64, tokens int) {
	p.state(0, id, event.StateQueued, &event.Request{})
	p.state(0, id, event.StateDispatched, nil)
	p.token(ttft, id, 1)
	for range tokens - 1 {
		p.token(gap, id, 1)
	}
	p.state(0, id, event.StateFinished, &event.Outcome{Prompt: 7, Generated: tokens})
}

func TestSinceAnEarlierSnapshot(t *testing.T) {
	p := newPlay()
	p.ask(1, 10*ms, ms, 101)
	then := p.store.Snapshot()
	p.ask(2, 40*ms, 3*ms, 51)
	p.emit(0, event.Event{Kind: event.KindLost, Data: &event.Lost{event.KindToken: 3}})
	d := p.store.Snapshot().Since(then)
	if d.Again || d.Ended != (Ends{Finished: 1}) || d.EndedBefore != (Ends{Finished: 1}) || d.Generated != 51 || d.GeneratedBefore != 101 || d.Lost != 3 {
		t.Errorf("since: %+v", d)
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
	want(t, "tokens/s since", d.Rate, 51/d.Span.Seconds())
	if back := then.Since(p.store.Snapshot()); !back.Again {
		t.Error("a snapshot is compared with a later one")
	}
}

func TestDriftSinceAnEarlierSnapshot(t *testing.T) {
	p := newPlay()
	zero := []uint64{0, 0, 0, 0}
	p.picked(2, 2, zero, []uint64{4, 0, 2, 2}, [2]uint64{metric.Decode: 4})
	then := p.store.Snapshot()
	if d := then.Since(then); d.Drifted >= 0 || d.Drift[0].OK() {
		t.Errorf("nothing has been picked since, and the drift is %+v", d.Drift)
	}
	p.picked(2, 2, zero, []uint64{4, 4, 3, 3}, [2]uint64{metric.Decode: 6})
	d := p.store.Snapshot().Since(then)
	if d.Drifted != 0 || d.Drift[0].V != 1 || d.Drift[1].V != 0 {
		t.Errorf("layer %d has drifted the most of %+v", d.Drifted, d.Drift)
	}
	p.picked(1, 2, []uint64{0, 0}, []uint64{9, 9}, [2]uint64{metric.Decode: 9})
	if d := p.store.Snapshot().Since(then); d.Drift != nil {
		t.Errorf("picks of another model are compared: %+v", d.Drift)
	}
}
