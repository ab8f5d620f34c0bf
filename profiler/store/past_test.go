package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// newSessionWithPast returns a session that keeps its past within a budget.
func newSessionWithPast(budget *PastBudget) *session {
	p := newSession()
	p.store = New(Options{
		Now: func() event.Time { return p.now }, Wall: func() time.Time { return time.Unix(1_700_000_000, int64(p.now)) }, Past: budget,
	})
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

// compareSnapshots compares all fields.
func compareSnapshots(t *testing.T, what string, want, got *Snapshot) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s: nothing is kept", what)
	}
	var same []string // fields that reflect.DeepEqual finds equal: it is ten times as fast as cmp.Diff
	w, g := reflect.ValueOf(*want), reflect.ValueOf(*got)
	for _, field := range reflect.VisibleFields(w.Type()) {
		if field.IsExported() && reflect.DeepEqual(w.FieldByIndex(field.Index).Interface(), g.FieldByIndex(field.Index).Interface()) {
			same = append(same, field.Name)
		}
	}
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	logs := cmp.Transformer("All", func(l *expertcache.Log) (tokens []string) { // the same tokens may be in other blocks
		for layer := range l.Layers {
			l.Layer(layer, func(_ int, kind uint8, picks []uint16) { tokens = append(tokens, fmt.Sprint(kind, picks)) })
		}
		return append(tokens, fmt.Sprint(l.Layers, l.Experts, l.Used, l.Kinds, l.Dropped))
	})
	if d := cmp.Diff(want, got, all, logs, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Snapshot{}, same...), cmpopts.IgnoreFields(pickSpan{}, "summaries")); d != "" {
		t.Fatalf("%s, in %v: %.3000s", what, want.Now, d)
	}
}

// TestPastIsWhatWasShown checks that every kept snapshot equals that of a session that ends there: later events change
// nothing of it, and it does not matter who looked in between.
func TestPastIsWhatWasShown(t *testing.T) {
	const moments = 10
	play := func(seed uint64, budget *PastBudget, n int, look bool) *session {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newSessionWithPast(budget)
		p.engine(event.CapTokens | event.CapQueue | event.CapSteps)
		p.moe(2, 4, 2)
		counts := make([]uint64, 8)
		for range n {
			emitRandom(p, rng, 250, counts)
			p.now = p.now/event.Time(sec)*event.Time(sec) + event.Time(sec)
			if p.store.Drain(); look {
				p.store.Snapshot()
			}
		}
		return p
	}
	for seed := range uint64(2) {
		whole := play(seed, NewPastBudget(MaxPastBytes), moments, true)
		if x := whole.store.Snapshot().Picks; x == nil || len(x.Kinds) != 2 || len(x.Pairs[0]) == 0 {
			t.Fatal("no token picks to test")
		}
		for n := range moments {
			want := play(seed, nil, n+1, false).store.Snapshot()
			got := whole.store.Past().At(want.Now)
			compareSnapshots(t, fmt.Sprintf("seed %d, moment %d", seed, n), want, got)
			if next := whole.store.Past().After(got.Now - 1); next != got {
				t.Errorf("after %v comes %v", got.Now-1, next.Now)
			}
		}
	}
}

// keptSeconds returns the seconds of the kept snapshots.
func (p *session) keptSeconds() (list []int64) {
	for _, v := range p.store.Past().Until(p.now) {
		list = append(list, secondOf(v.Now))
	}
	return list
}

// TestPastIsThinned checks which seconds are kept: each of the last two minutes, one in five before, and none from more
// than a quarter of an hour ago.
func TestPastIsThinned(t *testing.T) {
	p := newSessionWithPast(NewPastBudget(MaxPastBytes))
	p.now = 0
	past := p.store.Past()
	if from, to := past.Range(); from != to || past.At(to) != nil || past.After(0) != nil {
		t.Errorf("before any event the past reaches from %v to %v", from, to)
	}
	for s := range int64(1201) {
		p.now = event.Time(s*sec + 3)
		p.emit(0, event.Event{Kind: event.KindLog, Text: "x"})
	}
	got := p.keptSeconds()
	var want []int64
	for s := int64(300); s <= 1200; s++ {
		if s >= 1080 || s%5 == 0 {
			want = append(want, s)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
	if from, to := past.Range(); secondOf(from) != want[0] || to != p.now {
		t.Errorf("the past reaches from %v to %v", from, to)
	}
	at := func(s float64) int64 {
		if v := past.At(event.Time(s * float64(sec))); v != nil {
			return secondOf(v.Now)
		}
		return -1
	}
	for s, want := range map[float64]int64{299.9: -1, 300: 300, 304.9: 300, 1100.5: 1100, 1200: 1200, 5000: 1200} {
		if got := at(s); got != want {
			t.Errorf("second %v: %d, want %d", s, got, want)
		}
	}
	p.now += event.Time(10 * sec) // nothing happens
	if got := at(1207); got != 1207 {
		t.Errorf("a second without events: %d", got)
	}
}

// emitDemo emits seconds of what the built-in model reports without flags: a request after the other, 40 tokens/s, the
// picks of layers x experts, stages, forward passes, samples of the machine.
func emitDemo(p *session, seconds, layers, experts, used int) {
	const tokens, rate = 160, 40
	rng := rand.New(rand.NewPCG(1, 1))
	p.engine(event.CapTokens | event.CapQueue | event.CapSteps | event.CapStages)
	p.moe(layers, experts, used)
	counts, made, id := make([]uint64, layers*experts), tokens, event.RequestID(p.now)
	for i := range seconds * rate {
		if made == tokens {
			p.state(0, id, event.StateFinished, &event.Outcome{Reason: "length", Prompt: 40, Generated: tokens})
			id, made = id+1, 0
			p.state(0, id, event.StateQueued, &event.Request{MaxTokens: tokens, Prompt: fmt.Sprintf("%0200d", id), Label: []string{"code", "prose", "chat"}[id%3]})
			p.state(0, id, event.StateDispatched, nil)
			p.stage(id, event.StagePrompt, ms, 40)
		}
		made++
		p.step(20*ms+rng.Int64N(ms), 1, 0)
		p.stage(id, event.StagePace, 4*ms-rng.Int64N(ms), 0)
		picks := make([]uint16, layers*used)
		for k := range picks {
			picks[k] = uint16(rng.IntN(experts))
			counts[k/used*experts+int(picks[k])]++
		}
		p.emit(0, event.Event{Kind: event.KindToken, Req: id, N: 1, ID: rng.Int32N(4096), Step: uint64(i), Text: " word", Layer: -1, Picks: picks, Index: int32(made)})
		if i%(rate/2) == 0 {
			p.emitPicks(layers, experts, make([]uint64, len(counts)), slices.Clone(counts), [2]uint64{metric.Decode: uint64(i)})
		}
		if i%rate == 0 {
			p.host(event.Host{Interval: sec, CPU: event.MeasuredValue(rng.Float64()), Cores: []float64{rng.Float64(), rng.Float64()}})
			p.store.Drain()
		}
	}
	p.store.Drain()
}

// TestPastReachesNineMinutes checks how far the past of a model at 40 tokens/s reaches, that it takes no more memory than
// its bound, and that the estimate of that is about right. The heatmaps of a large model are kept for a minute at most.
func TestPastReachesNineMinutes(t *testing.T) {
	eventtest.SkipUnderRace(t)
	for _, c := range []struct {
		name                  string
		layers, experts, used int
		minutes               time.Duration
		dropped               bool
	}{{"8x16", 8, 16, 2, 9, false}, {"48x128", 48, 128, 8, 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			p := newSessionWithPast(NewPastBudget(MaxPastBytes))
			emitDemo(p, int(c.minutes)*60+30, c.layers, c.experts, c.used)
			past := p.store.Past()
			from, to := past.Range()
			heatmaps := 0
			for _, v := range past.Until(to) {
				switch {
				case v.HeatmapsDropped != (v.Experts == nil) || (v.Experts == nil) != (v.Picks == nil):
					t.Errorf("%v: heatmaps dropped: %v", v.Now, v.HeatmapsDropped)
				case v.Experts != nil:
					heatmaps++
				}
			}
			n, estimate, all := len(past.kept), past.sum.total(), heapInUse()
			past.kept = slices.Clone(past.kept[n-1:])
			taken := int(all - heapInUse())
			runtime.KeepAlive(p)
			t.Logf("%d snapshots, %d with heatmaps, over %v: %d KB, %d bytes each; estimated %d KB", n, heatmaps, time.Duration(to-from), taken>>10, taken/n, estimate>>10)
			if to-from < event.Time(c.minutes*time.Minute) || taken > MaxPastBytes || estimate > MaxPastBytes {
				t.Errorf("the past takes %d KB, estimated %d KB, and reaches back %v", taken>>10, estimate>>10, time.Duration(to-from))
			}
			if taken < estimate*2/3 || taken > estimate*3/2 {
				t.Errorf("the past takes %d bytes, estimated %d", taken, estimate)
			}
			if c.dropped != (heatmaps < n) || c.dropped && (heatmaps < 15 || heatmaps > 61) {
				t.Errorf("%d of %d snapshots have heatmaps", heatmaps, n)
			}
		})
	}
}

// emitServer emits seconds of reports with the metrics of vLLM.
func emitServer(p *session, seconds int) {
	rng := rand.New(rand.NewPCG(1, uint64(p.now)))
	bounds := make([]int64, 22)
	for i := range bounds {
		bounds[i] = int64(i*i+1) * ms
	}
	for range seconds {
		r := &event.Aggregates{
			Interval: sec, Running: reported(float64(rng.IntN(20))), Waiting: reported(float64(rng.IntN(7))), KVUsage: reported(rng.Float64()),
			Decode: event.DerivedValue(300 + rng.Float64()), Finished: event.DerivedValue(3), Prompt: event.DerivedValue(900), Generated: event.DerivedValue(310),
		}
		for _, name := range []string{event.HistogramTTFT, event.HistogramITL, event.HistogramE2EL, event.HistogramQueue, event.HistogramPrefill, event.HistogramDecode, event.HistogramInference} {
			h := event.Histogram{Name: name, Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
			for k := range 8 {
				h.Counts[5+k] = uint64(rng.IntN(12))
				h.Count += h.Counts[5+k]
			}
			h.Sum = int64(h.Count) * 50 * ms
			r.Histograms = append(r.Histograms, h)
		}
		p.emit(sec, event.Event{Kind: event.KindAggregates, Layer: -1, Data: r})
		p.store.Drain()
	}
}

// TestServersSharePast checks that each of hundreds of servers keeps minutes within a shared budget, in larger steps, and
// as much as it may without the others.
func TestServersSharePast(t *testing.T) {
	const members = 500
	budget := NewPastBudget(24 << 20)
	p := newSessionWithPast(budget)
	emitServer(p, 300)
	if n := len(p.keptSeconds()); n < 120+180/sparseFactor {
		t.Errorf("a single server keeps %d seconds of 300", n)
	}
	budget.members.Add(members - 1)
	least := event.Time(0)
	for range 120 {
		emitServer(p, 5)
		past := p.store.Past()
		if size := past.sum.total(); size > budget.PerStore() && len(past.kept) > minKept {
			t.Fatalf("%d bytes in %d snapshots, its share is %d", size, len(past.kept), budget.PerStore())
		}
		if from, to := past.Range(); least == 0 || to-from < least {
			least = to - from
		}
	}
	t.Logf("each of %d servers keeps at least %v: seconds %v", members, time.Duration(least), p.keptSeconds())
	if least < event.Time(time.Minute) {
		t.Errorf("each of %d servers keeps only %v", members, time.Duration(least))
	}
}
