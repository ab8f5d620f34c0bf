package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestSpreadBuckets checks that each gap is within the bounds of its bucket, and that gaps out of range count in the
// first or last one.
func TestSpreadBuckets(t *testing.T) {
	for _, gap := range []int64{8001, 9514, 20e3, 1e6, 9_040_000, 33e6, 1e9, 100e9} {
		b := spreadBucket(gap)
		if from, to := SpreadStart(b), SpreadStart(b+1); float64(gap) < from || float64(gap) >= to {
			t.Errorf("%d ns is in bucket %d, from %v to %v", gap, b, from, to)
		}
	}
	for gap, want := range map[int64]int{-1: 0, 0: 0, 1: 0, 8000: 0, 200e9: SpreadBuckets - 1, maxDur: SpreadBuckets - 1} {
		if b := spreadBucket(gap); b != want {
			t.Errorf("%d ns is in bucket %d, want %d", gap, b, want)
		}
	}
}

// TestSpreadOfEverySecond checks that a second's spread counts each of its gaps once, is nil without tokens, and is
// never written again.
func TestSpreadOfEverySecond(t *testing.T) {
	p := newSession() // at 1 s
	p.state(0, 1, event.StateQueued, nil)
	p.token(0, 1, 1)
	for range 20 {
		p.token(30*ms, 1, 1)
	}
	p.token(2*sec, 1, 4) // four tokens at 3.6 s, 500 ms apart
	early := p.store.Snapshot()
	p.token(600*ms, 1, 1)
	p.now += event.Time(sec)
	late := p.store.Snapshot()
	want := []map[int64]uint32{1: {30e6: 20}, 3: {500e6: 4}, 4: {600e6: 1}}
	for _, pt := range late.Latency.Series {
		sec := int64(pt.At) / 1e9
		if int(sec) >= len(want) || want[sec] == nil {
			if pt.Spread != nil || pt.Count != 0 {
				t.Errorf("second %d without tokens: %v", sec, pt)
			}
			continue
		}
		var sum uint32
		for _, n := range pt.Spread {
			sum += n
		}
		for gap, n := range want[sec] {
			if got := pt.Spread[spreadBucket(gap)]; got != n || sum != n || uint64(n) != pt.Count {
				t.Errorf("second %d has %d of %d gaps in the bucket of %d ns, want all %d", sec, got, sum, gap, n)
			}
		}
	}
	if n := len(early.Latency.Series); n == 0 || early.Latency.Series[0].Spread != late.Latency.Series[0].Spread {
		t.Error("the spread of an ended second has changed")
	}
}

// TestSpreadOfLateToken checks that a token that arrives after its second was closed counts in the current second, as
// in all distributions.
func TestSpreadOfLateToken(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.token(0, 1, 1)
	stamp := p.now + event.Time(100*ms)
	p.now += event.Time(1500 * ms)
	p.store.Snapshot() // closes the first second
	p.store.Emit(event.Event{At: stamp, Kind: event.KindToken, Req: 1, N: 1})
	p.now += event.Time(sec)
	for _, pt := range p.store.Snapshot().Latency.Series {
		if late := int64(pt.At) == 2*sec; (pt.Spread != nil) != late || (pt.Count == 1) != late {
			t.Errorf("second %d has %d gaps, spread %v", int64(pt.At)/sec, pt.Count, pt.Spread)
		}
	}
}

// TestSpreadStaysBounded checks the spreads and the length of the series after long times without snapshots.
func TestSpreadStaysBounded(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	for range 2 * SeriesLen {
		p.token(900*ms, 1, 1)
	}
	for _, wait := range []int64{sec, 70 * sec} {
		p.now += event.Time(wait)
		s := p.store.Snapshot().Latency.Series
		if len(s) > SeriesLen {
			t.Errorf("%d seconds are kept", len(s))
		}
		for _, pt := range s {
			if (pt.Spread == nil) != (pt.Count == 0) {
				t.Errorf("second %d has %d gaps and the spread %v", int64(pt.At)/1e9, pt.Count, pt.Spread)
			}
		}
	}
}
