package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// newSessionWithHistory returns a session with a history of limit bytes, in segments of the given number of events.
func newSessionWithHistory(limit, events int) *session {
	p := newSession()
	p.store = New(Options{
		Now: func() event.Time { return p.now }, Wall: func() time.Time { return time.Unix(1_700_000_000, int64(p.now)) }, History: limit,
	})
	if p.store.history != nil {
		p.store.history.maxEvents = events
	}
	return p
}

// emitRandom emits n random steps of a few concurrent requests, with all kinds of events.
func emitRandom(p *session, rng *rand.Rand, n int, counts []uint64) {
	var open []event.RequestID
	next := event.RequestID(1 + p.now)
	for i := range n {
		if i%37 == 36 {
			p.emitAggregates(rng, i)
		}
		switch k := rng.IntN(40); {
		case k == 0 && len(open) < 6:
			next++
			p.state(int64(rng.IntN(int(5*ms))), next, event.StateQueued, &event.Request{Group: "g", Label: []string{"a", "b"}[i%2], Prompt: "Call me", Cold: next%5 == 0})
			p.state(ms, next, event.StateDispatched, nil)
			p.stage(next, event.StagePrompt, 3*ms, 40)
			p.emit(0, event.Event{Kind: event.KindStage, Stage: event.StageAttention, Layer: int16(i % 3), Req: next, Dur: ms})
			open = append(open, next)
		case k == 1 && len(open) > 0:
			at := rng.IntN(len(open))
			p.state(ms, open[at], event.StateFinished+event.State(rng.IntN(3)), &event.Outcome{Reason: "stop", Prompt: 40, Generated: 3})
			open = append(open[:at], open[at+1:]...)
		case k == 2:
			for c := range counts {
				counts[c] += uint64(rng.IntN(3))
			}
			p.emitPicks(2, len(counts)/2, make([]uint64, len(counts)), counts, [2]uint64{metric.Decode: uint64(i) + uint64(p.now)})
		case k == 3:
			p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(rng.Float64()), Engine: event.Process{RSS: event.MeasuredValue(1e6)}}})
			p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(i), Total: 4096, Freed: 1, Residency: ms}})
		case k == 4:
			p.emit(0, event.Event{Kind: event.KindLog, Text: "a line"})
		case k == 5:
			p.now += event.Time(rng.Int64N(3 * sec))
		case k < 10:
			p.step(ms/2, int32(len(open)), int32(k-6)*20)
		case len(open) > 0:
			picks := make([]uint16, 4) // ignored unless the model has a router of this shape
			for i := range picks {
				picks[i] = uint16(rng.IntN(4))
			}
			p.emit(int64(rng.IntN(int(2*ms)))+ms*int64(k/39)*20, event.Event{
				Kind: event.KindToken, Req: open[rng.IntN(len(open))], N: 1 + int32(k/38), Text: "w", Picks: picks, Step: uint64(i / 7),
			})
		}
	}
	for _, id := range open[:len(open)/2] { // the others stay open
		p.state(ms, id, event.StateFinished, nil)
	}
}

// emitAggregates emits a report with aggregate metrics and one busy slot.
func (p *session) emitAggregates(rng *rand.Rand, i int) {
	p.emit(0, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{
		Interval: sec, Running: event.MeasuredValue(float64(i % 5)), Decode: event.MeasuredValue(rng.Float64()), Generated: event.MeasuredValue(3), KVUsage: event.MeasuredValue(0.5),
		Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 2, Sum: int64(i), Bounds: []int64{1, 9}, Counts: []uint64{1, 1, 0}}, {Name: event.HistogramQueue}},
		Slots:      []event.Slot{{Slot: 1, Request: event.RequestID(1<<40 + i/300), Prompt: 9, Processed: 9, Generated: i % 300}},
	}})
}

// compareSnapshots compares all fields but the verdicts, which depend on how often snapshots are taken.
func compareSnapshots(t *testing.T, what string, want, got *Snapshot) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s: the history does not reach back", what)
	}
	same := []string{"Verdicts"} // and fields that reflect.DeepEqual finds equal: it is ten times as fast as cmp.Diff
	w, g := reflect.ValueOf(*want), reflect.ValueOf(*got)
	for _, field := range reflect.VisibleFields(w.Type()) {
		if field.IsExported() && reflect.DeepEqual(w.FieldByIndex(field.Index).Interface(), g.FieldByIndex(field.Index).Interface()) {
			same = append(same, field.Name)
		}
	}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	logs := cmp.Transformer("All", func(l *expertcache.Log) (tokens []string) { // the same tokens may be in other blocks
		l.All(0, func(_ int, kind uint8, picks []uint16) { tokens = append(tokens, fmt.Sprint(kind, picks)) })
		return append(tokens, fmt.Sprint(l.Layers, l.Experts, l.Used, l.Kinds, l.Dropped))
	})
	if d := cmp.Diff(want, got, all, logs, cmp.Transformer("All", TokenList.All), cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Snapshot{}, same...), cmpopts.IgnoreFields(pickSpan{}, "summaries")); d != "" {
		t.Fatalf("%s, in %v: %.3000s", what, want.Now, d)
	}
}

// TestHistoryMatchesPastSnapshots checks that the history reproduces every earlier snapshot, in any order: requests,
// distributions and counts.
func TestHistoryMatchesPastSnapshots(t *testing.T) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newSessionWithHistory(1<<30, 400)
		p.engine(event.CapTokens | event.CapQueue | event.CapSteps)
		p.moe(2, 4, 2)
		counts := make([]uint64, 8)
		var moments []*Snapshot
		for range 12 {
			emitRandom(p, rng, 250, counts)
			moments = append(moments, p.store.Snapshot())
			p.now++ // later events have later stamps
		}
		if n := len(p.store.history.segments); n < 4 {
			t.Fatalf("%d segments, want at least 4 to test", n)
		}
		if x := moments[len(moments)-1].Picks; x == nil || len(x.Kinds) != 2 || len(x.Pairs[0]) == 0 {
			t.Fatal("no token picks to test")
		}
		if p.store.history.unencodable > 0 {
			t.Errorf("%d events are not in the history", p.store.history.unencodable)
		}
		reader := p.store.HistoryReader()
		for _, m := range moments { // forward
			compareSnapshots(t, "forward", m, reader.At(m.Now))
		}
		for range 6 {
			m := moments[rng.IntN(len(moments))]
			compareSnapshots(t, "jumping", m, reader.At(m.Now))
			emitRandom(p, rng, 20, counts) // the store continues
		}
	}
}

// TestHistoryReaderFollowsPresent checks that a reader sees events that arrive after it was created, block by block.
func TestHistoryReaderFollowsPresent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	p := newSessionWithHistory(1<<30, 1<<30)
	p.engine(event.CapTokens)
	counts := make([]uint64, 4)
	reader := p.store.HistoryReader()
	for range 8 {
		emitRandom(p, rng, 1500, counts)
		compareSnapshots(t, "following", p.store.Snapshot(), reader.At(p.now))
		p.now++
	}
	if n := len(p.store.history.segments[0].blocks); n < 3 {
		t.Fatalf("%d blocks, want at least 3 to test", n)
	}
}

// TestHistoryStopsBetweenTokens checks that a time between two tokens of one entry of the history is reached exactly,
// in jumps and in steps, although the entry holds later tokens, too.
func TestHistoryStopsBetweenTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	emit := func(p *session, drain bool) {
		rng := rand.New(rand.NewPCG(5, 5))
		p.engine(event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		p.state(ms, 1, event.StateDispatched, nil)
		for i := range 3 * maxEntryEvents {
			pass := event.Split{Embed: 1, Attention: uint32(i), Head: 3}
			if i < 5 || i > maxEntryEvents && i%3 > 0 { // some tokens without a pass
				p.emit(rng.Int64N(2)*ms, event.Event{Kind: event.KindStep, Step: uint64(i + 1), N: 1, Dur: ms, Split: pass})
			}
			pass.Sample = 7
			p.emit(rng.Int64N(3)*ms, event.Event{Kind: event.KindToken, Req: 1, N: 1, Step: uint64(i + 1), Split: pass}) // some at the same time
			if drain {
				p.store.Drain() // an entry each
			}
		}
	}
	together, apart := newSessionWithHistory(1<<30, 1<<30), newSessionWithHistory(1<<30, 1<<30)
	emit(together, false)
	emit(apart, true)
	readers := [2]*HistoryReader{apart.store.HistoryReader(), together.store.HistoryReader()}
	from, to := readers[0].Range()
	together.store.Drain()
	if a, b := len(together.store.history.segments[0].open), len(apart.store.history.segments[0].open); a > b/2 {
		t.Fatalf("%d bytes with tokens together and %d apart: they are not together", a, b)
	}
	compare := func(what string, at event.Time) {
		t.Helper()
		compareSnapshots(t, what, readers[0].At(at), readers[1].At(at))
	}
	for at := from; at <= to; at += event.Time(ms) / 2 {
		compare("in steps", at)
	}
	for range 50 {
		compare("in jumps", from+event.Time(rng.Int64N(int64(to-from))))
	}
}

// TestHistoryIsBounded checks that the history stays within its limit, and that At returns nil for times that it no
// longer reaches.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	p := newSessionWithHistory(limit, maxSegmentEvents)
	p.engine(event.CapTokens)
	counts := make([]uint64, 8)
	var moments []*Snapshot
	for range 100 {
		emitRandom(p, rng, 1000, counts)
		moments = append(moments, p.store.Snapshot())
		p.now++
		size := 0
		for _, s := range p.store.history.segments {
			size += s.size
		}
		if size > limit+limit/2 {
			t.Fatalf("%d bytes in %d segments, %d of them the first base state, limit %d", size, len(p.store.history.segments), p.store.history.segments[0].base.size, limit)
		}
	}
	reader := p.store.HistoryReader()
	from, to := reader.Range()
	if to != p.now || from <= moments[0].Now || from >= p.now {
		t.Fatalf("the history reaches from %v to %v", from, to)
	}
	if s := reader.At(from - 1); s != nil {
		t.Error("snapshot of an evicted time")
	}
	compared := 0
	for _, m := range moments {
		if m.Now < from {
			continue
		}
		compared++
		got := reader.At(m.Now)
		if got == nil {
			t.Fatalf("no snapshot of %v", m.Now)
		}
		if got.Counts.GeneratedTokens != m.Counts.GeneratedTokens || got.Latency.ITL != m.Latency.ITL || len(got.Requests) != len(m.Requests) {
			t.Errorf("%v: %+v, want %+v", m.Now, got.Counts, m.Counts)
		}
		for i, r := range got.Requests {
			if r.TTFT != m.Requests[i].TTFT || r.State != m.Requests[i].State || r.Generated != m.Requests[i].Generated {
				t.Errorf("request %d was %+v, want %+v", r.ID, r, m.Requests[i])
			}
		}
	}
	if compared == 0 {
		t.Error("no snapshot could be compared")
	}
}

// TestDropsInHistory checks that the history includes the drops of the queue, and the time before the first event.
func TestDropsInHistory(t *testing.T) {
	p := newSessionWithHistory(1<<20, maxSegmentEvents)
	reader := p.store.HistoryReader()
	if from, to := reader.Range(); from != to {
		t.Errorf("without events the history reaches from %v to %v", from, to)
	}
	for range event.DefaultQueue + 7 {
		p.emit(us, event.Event{Kind: event.KindLog, Text: "x"})
	}
	p.store.Snapshot()
	p.emit(sec, event.Event{Kind: event.KindLog, Text: "y"})
	m := p.store.Snapshot()
	if m.Drops[event.KindLog] != 7 {
		t.Fatalf("dropped %d, want 7", m.Drops[event.KindLog])
	}
	compareSnapshots(t, "drops", m, reader.At(m.Now))
	if s := reader.At(1); s == nil || s.Counts.GeneratedTokens != 0 || len(s.Log) != 0 {
		t.Errorf("before the session: %+v", s)
	}
	if newSession().store.HistoryReader() != nil {
		t.Error("a store without history returns a reader")
	}
}

// TestHistoryEvents checks that the events of a history, over all its segments, make the same session again.
func TestHistoryEvents(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := newSessionWithHistory(1<<22, 150)
	p.engine(event.CapTokens | event.CapQueue)
	counts := make([]uint64, 8)
	middle := event.Time(0)
	for i := range 8 {
		emitRandom(p, rng, 200, counts)
		p.store.Snapshot() // a segment begins with a batch
		if p.now += event.Time(sec); i == 4 {
			middle = p.now
		}
	}
	if len(p.store.history.segments) < 3 {
		t.Fatalf("%d segments: too few to test", len(p.store.history.segments))
	}
	reader := p.store.HistoryReader()
	for _, until := range []event.Time{middle, p.now} {
		again := newSessionWithHistory(0, 0)
		again.now = until
		reader.Events(until, func(e event.Event) {
			again.store.Emit(e)
			again.store.Drain()
		})
		compareSnapshots(t, "from events", p.store.HistoryReader().At(until), again.store.Snapshot())
	}
	if got := reader.At(middle); got == nil || got.Now != middle {
		t.Errorf("after reading events, the reader returns %v", got)
	}
}
