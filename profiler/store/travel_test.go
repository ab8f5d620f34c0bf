package store

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// remembering is a session whose history is cut into segments of so many events.
func remembering(limit, events int) *play {
	p := newPlay()
	p.store = New(Options{
		Now: func() event.Time { return p.now }, Wall: func() time.Time { return time.Unix(1_700_000_000, int64(p.now)) }, History: limit,
	})
	if p.store.history != nil {
		p.store.history.events = events
	}
	return p
}

// wander lets some requests go on for a while, with everything that an engine tells.
func wander(p *play, rng *rand.Rand, n int, counts []uint64) {
	var open []event.RequestID
	next := event.RequestID(1 + p.now)
	for i := range n {
		if i%37 == 36 {
			p.report(rng, i)
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
			p.picked(2, len(counts)/2, make([]uint64, len(counts)), counts, [2]uint64{metric.Decode: uint64(i) + uint64(p.now)})
		case k == 3:
			p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.Of(rng.Float64()), Engine: event.Process{RSS: event.Of(1e6)}}})
			p.emit(0, event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(i), Total: 4096, Freed: 1, Residency: ms}})
		case k == 4:
			p.emit(0, event.Event{Kind: event.KindLog, Text: "a line"})
		case k == 5:
			p.now += event.Time(rng.Int64N(3 * sec))
		case k < 10:
			p.step(ms/2, int32(len(open)), int32(k-6)*20)
		case len(open) > 0:
			picks := make([]uint16, 4) // of those tests whose model says that it has a router of this shape
			for i := range picks {
				picks[i] = uint16(rng.IntN(4))
			}
			p.emit(int64(rng.IntN(int(2*ms)))+ms*int64(k/39)*20, event.Event{
				Kind: event.KindToken, Req: open[rng.IntN(len(open))], N: 1 + int32(k/38), Text: "w", Picks: picks,
			})
		}
	}
	for _, id := range open[:len(open)/2] { // the others never end
		p.state(ms, id, event.StateFinished, nil)
	}
}

// report tells of the engine in sum, and of a request in a slot.
func (p *play) report(rng *rand.Rand, i int) {
	p.emit(0, event.Event{Kind: event.KindReport, Data: &event.Report{
		Interval: sec, Running: event.Of(float64(i % 5)), Decode: event.Of(rng.Float64()), Generated: event.Of(3), KVUsage: event.Of(0.5),
		Times: []event.Times{{Name: event.TimesTTFT, Count: 2, Sum: int64(i), Bounds: []int64{1, 9}, Counts: []uint64{1, 1, 0}}, {Name: event.TimesQueue}},
		Slots: []event.Slot{{Slot: 1, Request: event.RequestID(1<<40 + i/300), Prompt: 9, Processed: 9, Generated: i % 300}},
	}})
}

// seen compares two snapshots in everything but the verdicts, which depend on how often somebody looks.
func seen(t *testing.T, what string, want, got *Snapshot) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s: the history does not reach it", what)
	}
	same := []string{"Verdicts"} // and what is equal to the last bit, which takes a tenth of the time to find out
	w, g := reflect.ValueOf(*want), reflect.ValueOf(*got)
	for _, field := range reflect.VisibleFields(w.Type()) {
		if field.IsExported() && reflect.DeepEqual(w.FieldByIndex(field.Index).Interface(), g.FieldByIndex(field.Index).Interface()) {
			same = append(same, field.Name)
		}
	}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if d := cmp.Diff(want, got, all, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Snapshot{}, same...)); d != "" {
		t.Fatalf("%s, in %v: %.3000s", what, want.Now, d)
	}
}

// Whatever moment is looked at, in whatever order, it is the one that was: every request that was open then, every distribution, every count.
func TestThePastIsWhatItWas(t *testing.T) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := remembering(1<<30, 400)
		p.engine(event.CapTokens | event.CapQueue | event.CapSteps)
		p.moe(2, 4, 2)
		counts := make([]uint64, 8)
		var moments []*Snapshot
		for range 12 {
			wander(p, rng, 250, counts)
			moments = append(moments, p.store.Snapshot())
			p.now++ // what comes is later
		}
		if n := len(p.store.history.segments); n < 4 {
			t.Fatalf("%d segments: the test looks at nothing", n)
		}
		if x := moments[len(moments)-1].Picks; x == nil || len(x.Kinds) != 2 || len(x.Pairs[0]) == 0 {
			t.Fatal("no token has told of its picks: the test looks at nothing")
		}
		if p.store.history.missed > 0 {
			t.Errorf("%d events are missed", p.store.history.missed)
		}
		trip := p.store.Travel()
		for _, m := range moments { // forward
			seen(t, "going on", m, trip.At(m.Now))
		}
		for range 6 {
			m := moments[rng.IntN(len(moments))]
			seen(t, "jumping", m, trip.At(m.Now))
			wander(p, rng, 20, counts) // the store goes on meanwhile
		}
	}
}

// A trip that goes along with the present sees what came after it began, block by block.
func TestATripGoesOnWithThePresent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	p := remembering(1<<30, 1<<30)
	p.engine(event.CapTokens)
	counts := make([]uint64, 4)
	trip := p.store.Travel()
	for range 8 {
		wander(p, rng, 1500, counts)
		seen(t, "following", p.store.Snapshot(), trip.At(p.now))
		p.now++
	}
	if n := len(p.store.history.segments[0].blocks); n < 3 {
		t.Fatalf("%d blocks: the test looks at nothing", n)
	}
}

// What is kept stays within its bound, and what it no longer reaches is told from what it does.
func TestHistoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	p := remembering(limit, segmentEvents)
	p.engine(event.CapTokens)
	counts := make([]uint64, 8)
	var moments []*Snapshot
	for range 100 {
		wander(p, rng, 1000, counts)
		moments = append(moments, p.store.Snapshot())
		p.now++
		size := 0
		for _, s := range p.store.history.segments {
			size += s.size
		}
		if size > limit+limit/2 {
			t.Fatalf("%d bytes are kept in %d segments, %d of them the last state, the bound is %d", size, len(p.store.history.segments), p.store.history.segments[0].key.size, limit)
		}
	}
	trip := p.store.Travel()
	from, to := trip.Reach()
	if to != p.now || from <= moments[0].Now || from >= p.now {
		t.Fatalf("it reaches from %v to %v", from, to)
	}
	if s := trip.At(from - 1); s != nil {
		t.Error("a moment is shown that is no longer kept")
	}
	looked := 0
	for _, m := range moments {
		if m.Now < from {
			continue
		}
		looked++
		got := trip.At(m.Now)
		if got == nil {
			t.Fatalf("%v cannot be seen", m.Now)
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
	if looked == 0 {
		t.Error("nothing could be looked at")
	}
}

// The queue's losses are part of the past, and so is the time before the first event.
func TestLossesOfThePast(t *testing.T) {
	p := remembering(1<<20, segmentEvents)
	trip := p.store.Travel()
	if from, to := trip.Reach(); from != to {
		t.Errorf("before any event it reaches from %v to %v", from, to)
	}
	for range event.DefaultQueue + 7 {
		p.emit(us, event.Event{Kind: event.KindLog, Text: "x"})
	}
	p.store.Snapshot()
	p.emit(sec, event.Event{Kind: event.KindLog, Text: "y"})
	m := p.store.Snapshot()
	if m.Lost[event.KindLog] != 7 {
		t.Fatalf("lost %d", m.Lost[event.KindLog])
	}
	seen(t, "lost", m, trip.At(m.Now))
	if s := trip.At(1); s == nil || s.Counts.GeneratedTokens != 0 || len(s.Log) != 0 {
		t.Errorf("before the session there was %+v", s)
	}
	if newPlay().store.Travel() != nil {
		t.Error("a store without history has one")
	}
}
