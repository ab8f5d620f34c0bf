package store

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// routed emits a token with what the router picked for it.
func (p *play) routed(id event.RequestID, picks ...uint16) {
	p.emit(ms, event.Event{Kind: event.KindToken, Req: id, N: 1, Picks: picks})
}

// moe announces a model with a router.
func (p *play) moe(layers, experts, used int) {
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "moe", Architecture: "qwen3moe", Layers: layers, Experts: experts, ExpertsUsed: used}})
}

// asked queues a request of a kind and a group.
func (p *play) asked(id event.RequestID, kind, group string) {
	p.state(0, id, event.StateQueued, &event.Request{Label: kind, Group: group})
}

func TestPicksOfTokens(t *testing.T) {
	const none = math.MaxUint16
	p := newPlay()
	p.moe(2, 4, 2)
	p.asked(1, "code", "a")
	p.asked(2, "verse", "")
	if got := p.store.Snapshot().Picks; got != nil {
		t.Errorf("before any token: %+v", got)
	}
	p.routed(1, 0, 1 /**/, 2, 3)
	p.routed(1, 1, 0 /**/, none, 3) // of one layer not all is known
	p.routed(2, 0, 2 /**/, 3, 2)
	p.routed(1, 0, 3 /**/, 1, 900)      // there is no expert 900
	p.routed(1, 0, 3)                   // of another shape
	p.routed(2, 3, 3 /**/, 0, 0)        // no pair is made of one expert
	p.token(ms, 1, 1)                   // without picks
	p.now += event.Time(2 * int64(sec)) // or it would be told later
	x := p.store.Snapshot().Picks
	if x == nil {
		t.Fatal("no picks")
	}
	if want := []uint64{4, 2, 1, 3 /**/, 2, 1, 2, 3}; x.All.Tokens != 5 || !slices.Equal(x.All.Counts, want) {
		t.Errorf("%d tokens picked %v, want 5 and %v", x.All.Tokens, x.All.Counts, want)
	}
	if len(x.Kinds) != 2 || x.Kinds[0].Name != "code" || x.Kinds[0].Hits.Tokens != 3 || !slices.Equal(x.Kinds[1].Hits.Counts, []uint64{1, 0, 1, 2, 2, 0, 1, 1}) {
		t.Errorf("by kind: %+v", x.Kinds)
	}
	if len(x.Groups) != 2 || x.Groups[0].Name != "a" || x.Groups[1].Name != "" || x.Groups[1].Hits.Tokens != 2 {
		t.Errorf("by group, that without a name last: %+v", x.Groups)
	}
	// Of 5 tokens 2 picked 0 and 1 of layer 0, which have 4 and 2 picks: 2 x 5 / (4 x 2) as many as by chance.
	want := [][]Pair{{{0, 1, 2, 1.25}, {0, 2, 1, 1.25}, {0, 3, 1, 5. / 12}}, {{2, 3, 2, 10. / 6}}}
	for l := range want {
		near := func(a, b Pair) bool {
			return a.A == b.A && a.B == b.B && a.Tokens == b.Tokens && math.Abs(a.Lift-b.Lift) < 1e-12
		}
		if !slices.EqualFunc(x.Pairs[l], want[l], near) {
			t.Errorf("layer %d: %v, want %v", l, x.Pairs[l], want[l])
		}
	}
	p.moe(2, 4, 2)
	if p.store.Snapshot().Picks != nil {
		t.Error("the picks of another model stay")
	}
}

// A snapshot that has been handed out stays as it is; of a model with many pairs the next one of the same second is the same.
func TestPicksOfTokensChangeBySecond(t *testing.T) {
	p := newPlay()
	p.moe(1, 400, 1) // 79,800 pairs
	p.asked(1, "", "")
	p.routed(1, 0)
	first := p.store.Snapshot().Picks
	p.routed(1, 0)
	if p.store.Snapshot().Picks != first || first.All.Tokens != 1 {
		t.Error("the picks are told twice in a second")
	}
	p.now += event.Time(sec)
	p.emit(0, event.Event{Kind: event.KindLog})
	if second := p.store.Snapshot().Picks; second.All.Tokens != 2 || first.All.Tokens != 1 || first.All.Counts[0] != 1 {
		t.Errorf("a second later %d tokens are told, before %d", second.All.Tokens, first.All.Tokens)
	}
	p = newPlay()
	p.moe(1, 2, 1)
	p.asked(1, "", "")
	for n := range uint64(3) {
		p.routed(1, 0)
		if got := p.store.Snapshot().Picks; got.All.Tokens != n+1 {
			t.Errorf("of a small model %d tokens are told, want %d", got.All.Tokens, n+1)
		}
	}
}

func TestPicksOfTokensAreBounded(t *testing.T) {
	p := newPlay()
	p.moe(1, 4000, 2) // 7,998,000 pairs
	for i := range event.RequestID(MaxKinds + 3) {
		p.asked(i+1, fmt.Sprintf("kind %02d", i), "g")
		p.routed(i+1, uint16(i), 3999)
	}
	x := p.store.Snapshot().Picks
	if len(x.Kinds) != MaxKinds || x.MoreKinds != 3 || len(x.Groups) != 1 || x.MoreGroups != 0 || x.All.Tokens != MaxKinds+3 {
		t.Errorf("%d kinds and %d tokens of others, %d groups", len(x.Kinds), x.MoreKinds, len(x.Groups))
	}
	if x.Pairs != nil {
		t.Errorf("pairs of 4000 experts are counted: %v", x.Pairs)
	}
	p = newPlay()
	p.moe(1, 100, 2)
	p.asked(1, "", "")
	for i := range uint16(TopPairs + 10) {
		for range i + 1 {
			p.routed(1, i, 70+i)
		}
	}
	pairs := p.store.Snapshot().Picks.Pairs[0]
	if len(pairs) != TopPairs || pairs[0].Tokens != 30 || pairs[0].A != 29 || math.Abs(pairs[0].Lift-465./30) > 1e-12 || pairs[TopPairs-1].Tokens != 11 {
		t.Errorf("the most frequent pairs are %v", pairs)
	}
	p.moe(1, 500, 2) // 124,750 pairs
	for range 3 {
		p.now = (p.now/event.Time(sec) + 1) * event.Time(sec)
		for range 100 {
			p.routed(1, 7, 499)
		}
	}
	p.now += event.Time(sec)
	if x := p.store.Snapshot().Picks; x.All.Tokens != 300 || x.Paired != 3*dearTokens || x.Pairs[0][0] != (Pair{7, 499, 3 * dearTokens, 1}) {
		t.Errorf("of %d tokens %d are paired: %v", x.All.Tokens, x.Paired, x.Pairs[0])
	}
	p.moe(MaxCells, 2, 1)
	p.routed(1, make([]uint16, MaxCells)...)
	if p.store.Snapshot().Picks != nil {
		t.Error("a model beyond MaxCells is counted")
	}
}

func TestPicksOfTheNewestRequest(t *testing.T) {
	p := newPlay()
	picks := func() (decode, both []uint64, r *RequestPicks) {
		if r = p.store.Snapshot().Experts.Request; r == nil {
			return nil, nil, nil
		}
		return r.Hits[metric.Decode].Counts, r.Hits[metric.Both].Counts, r
	}
	p.picked(1, 2, []uint64{0, 0}, []uint64{0, 0}, [2]uint64{})
	if _, _, r := picks(); r != nil {
		t.Errorf("before any request: %+v", r)
	}
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	p.picked(1, 2, []uint64{4, 0}, []uint64{1, 2}, [2]uint64{metric.Prompt: 4, metric.Decode: 3})
	decode, both, early := picks()
	if !slices.Equal(decode, []uint64{1, 2}) || !slices.Equal(both, []uint64{5, 2}) || early.ID != 1 || early.Beside != 0 {
		t.Errorf("request 1: %v, %v, %+v", decode, both, early)
	}
	p.state(0, 1, event.StateFinished, nil)
	p.state(0, 2, event.StateQueued, nil)
	p.state(0, 2, event.StateDispatched, nil)
	if decode, _, r := picks(); r.ID != 2 || slices.Max(decode) != 0 || r.Hits[metric.Decode].Tokens != 0 {
		t.Errorf("request %d begins with %v", r.ID, decode)
	}
	p.picked(1, 2, []uint64{4, 1}, []uint64{6, 2}, [2]uint64{metric.Prompt: 5, metric.Decode: 8})
	if decode, both, r := picks(); !slices.Equal(decode, []uint64{5, 0}) || !slices.Equal(both, []uint64{5, 1}) || r.Hits[metric.Both].Tokens != 6 {
		t.Errorf("request 2: %v, %v", decode, both)
	}
	p.state(0, 3, event.StateQueued, nil)
	p.state(0, 3, event.StateDispatched, nil)
	if _, _, r := picks(); r.ID != 3 || r.Beside != 1 {
		t.Errorf("request %d runs beside %d", r.ID, r.Beside)
	}
	p.picked(1, 2, []uint64{0, 0}, []uint64{1, 0}, [2]uint64{metric.Decode: 1}) // another life of the engine
	if decode, _, _ := picks(); !slices.Equal(decode, []uint64{1, 0}) {
		t.Errorf("after a restart %v", decode)
	}
	if again := early.Hits[metric.Decode].Counts; !slices.Equal(again, []uint64{1, 2}) {
		t.Errorf("the snapshot has become %v", again)
	}
}

// BenchmarkApplyPicks is what a token with its picks costs the store: of the built-in model, and of the largest whose pairs are counted.
func BenchmarkApplyPicks(b *testing.B) {
	for _, c := range [][3]int{{8, 16, 2}, {94, 256, 8}} {
		b.Run(fmt.Sprintf("%dx%d", c[0], c[1]), func(b *testing.B) {
			p := newPlay()
			p.moe(c[0], c[1], c[2])
			p.asked(1, "code", "a")
			p.store.drain()
			e := event.Event{Kind: event.KindToken, Req: 1, N: 1, At: p.now, Picks: make([]uint16, c[0]*c[2])}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				for i := range e.Picks {
					e.Picks[i] = uint16((n*31 + i*17) % c[1])
				}
				e.At += event.Time(600 * us)
				p.store.state.apply(&e)
			}
		})
	}
}

// Of a large model the past does not know what tokens have told, rather than a part of it.
func TestThePastOfALargeModel(t *testing.T) {
	p := remembering(1<<30, 10)
	p.moe(1, 400, 2)
	p.asked(1, "", "")
	var before *Snapshot
	for i := range 50 {
		p.routed(1, 1, 2)
		if p.now += event.Time(sec); i == 25 {
			before = p.store.Snapshot()
		}
	}
	if before.Picks.All.Tokens != 26 || p.store.Snapshot().Picks.All.Tokens != 50 {
		t.Errorf("%d tokens have told, then %d", before.Picks.All.Tokens, p.store.Snapshot().Picks.All.Tokens)
	}
	trip := p.store.Travel()
	if then := trip.At(before.Now); then == nil || then.Picks != nil {
		t.Errorf("the past is told as %+v", then)
	}
	if p.store.Snapshot().Picks.All.Tokens != 50 {
		t.Error("a look at the past changes the present")
	}
}
