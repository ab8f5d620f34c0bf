package store

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// tokenWithPicks emits a token with its router picks.
func (p *session) tokenWithPicks(id event.RequestID, picks ...uint16) {
	p.emit(ms, event.Event{Kind: event.KindToken, Req: id, N: 1, Picks: picks})
}

// moe emits a model with a router.
func (p *session) moe(layers, experts, used int) {
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "moe", Architecture: "qwen3moe", Layers: layers, Experts: experts, ExpertsUsed: used}})
}

// queue emits a queued request of a prompt kind and a group.
func (p *session) queue(id event.RequestID, kind, group string) {
	p.state(0, id, event.StateQueued, &event.Request{Label: kind, Group: group})
}

func TestTokenPicks(t *testing.T) {
	const none = math.MaxUint16
	p := newSession()
	p.moe(2, 4, 2)
	p.queue(1, "code", "a")
	p.queue(2, "verse", "")
	if got := p.store.Snapshot().Picks; got != nil {
		t.Errorf("picks before any token: %+v", got)
	}
	p.tokenWithPicks(1, 0, 1 /**/, 2, 3)
	p.tokenWithPicks(1, 1, 0 /**/, none, 3) // one pick is missing
	p.tokenWithPicks(2, 0, 2 /**/, 3, 2)
	p.tokenWithPicks(1, 0, 3 /**/, 1, 900) // expert 900 does not exist
	p.tokenWithPicks(1, 0, 3)              // wrong length
	p.tokenWithPicks(2, 3, 3 /**/, 0, 0)   // one expert is not a pair
	p.token(ms, 1, 1)                      // without picks
	p.now += event.Time(2 * int64(sec))    // or the view would be one second old
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
		t.Errorf("by group, the unnamed one last: %+v", x.Groups)
	}
	// In layer 0, experts 0 and 1 have 4 and 2 picks of 5 tokens, and 2 tokens picked both: lift 2 x 5 / (4 x 2).
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
		t.Error("picks of the previous model are kept")
	}
}

// TestTokenPicksAreViewedOncePerSecond checks that views are immutable, and that a model with many pairs has one view
// per second.
func TestTokenPicksAreViewedOncePerSecond(t *testing.T) {
	p := newSession()
	p.moe(1, 400, 1) // 79,800 pairs
	p.queue(1, "", "")
	p.tokenWithPicks(1, 0)
	first := p.store.Snapshot().Picks
	p.tokenWithPicks(1, 0)
	if p.store.Snapshot().Picks != first || first.All.Tokens != 1 {
		t.Error("two views in one second")
	}
	p.now += event.Time(sec)
	p.emit(0, event.Event{Kind: event.KindLog})
	if second := p.store.Snapshot().Picks; second.All.Tokens != 2 || first.All.Tokens != 1 || first.All.Counts[0] != 1 {
		t.Errorf("%d tokens one second later, %d before", second.All.Tokens, first.All.Tokens)
	}
	p = newSession()
	p.moe(1, 2, 1)
	p.queue(1, "", "")
	for n := range uint64(3) {
		p.tokenWithPicks(1, 0)
		if got := p.store.Snapshot().Picks; got.All.Tokens != n+1 {
			t.Errorf("small model: %d tokens, want %d", got.All.Tokens, n+1)
		}
	}
}

func TestTokenPicksAreBounded(t *testing.T) {
	p := newSession()
	p.moe(1, 4000, 2) // 7,998,000 pairs
	for i := range event.RequestID(MaxKinds + 3) {
		p.queue(i+1, fmt.Sprintf("kind %02d", i), "g")
		p.tokenWithPicks(i+1, uint16(i), 3999)
	}
	x := p.store.Snapshot().Picks
	if len(x.Kinds) != MaxKinds || x.OmittedKinds != 3 || len(x.Groups) != 1 || x.OmittedGroups != 0 || x.All.Tokens != MaxKinds+3 {
		t.Errorf("%d kinds and %d tokens of others, %d groups", len(x.Kinds), x.OmittedKinds, len(x.Groups))
	}
	if x.Pairs != nil {
		t.Errorf("4000 experts have pairs: %v", x.Pairs)
	}
	p = newSession()
	p.moe(1, 100, 2)
	p.queue(1, "", "")
	for i := range uint16(TopPairs + 10) {
		for range i + 1 {
			p.tokenWithPicks(1, i, 70+i)
		}
	}
	pairs := p.store.Snapshot().Picks.Pairs[0]
	if len(pairs) != TopPairs || pairs[0].Tokens != 30 || pairs[0].A != 29 || math.Abs(pairs[0].Lift-465./30) > 1e-12 || pairs[TopPairs-1].Tokens != 11 {
		t.Errorf("most frequent pairs: %v", pairs)
	}
	p.moe(1, 500, 2) // 124,750 pairs
	for range 3 {
		p.now = (p.now/event.Time(sec) + 1) * event.Time(sec)
		for range 100 {
			p.tokenWithPicks(1, 7, 499)
		}
	}
	p.now += event.Time(sec)
	if x := p.store.Snapshot().Picks; x.All.Tokens != 300 || x.PairedTokens != 3*pairedPerSecond || x.Pairs[0][0] != (Pair{7, 499, 3 * pairedPerSecond, 1}) {
		t.Errorf("%d tokens, %d counted in pairs: %v", x.All.Tokens, x.PairedTokens, x.Pairs[0])
	}
	p.moe(MaxCells, 2, 1)
	p.tokenWithPicks(1, make([]uint16, MaxCells)...)
	if p.store.Snapshot().Picks != nil {
		t.Error("a model above MaxCells is counted")
	}
}

func TestPicksSinceDispatch(t *testing.T) {
	p := newSession()
	picks := func() (decode, both []uint64, r *RequestPicks) {
		if r = p.store.Snapshot().Experts.Request; r == nil {
			return nil, nil, nil
		}
		return r.Hits(metric.Decode).Counts, r.Hits(metric.Both).Counts, r
	}
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{0, 0}, [2]uint64{})
	if _, _, r := picks(); r != nil {
		t.Errorf("before any request: %+v", r)
	}
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	p.emitPicks(1, 2, []uint64{4, 0}, []uint64{1, 2}, [2]uint64{metric.Prompt: 4, metric.Decode: 3})
	decode, both, early := picks()
	if !slices.Equal(decode, []uint64{1, 2}) || !slices.Equal(both, []uint64{5, 2}) || early.ID != 1 || early.Concurrent != 0 {
		t.Errorf("request 1: %v, %v, %+v", decode, both, early)
	}
	p.state(0, 1, event.StateFinished, nil)
	p.state(0, 2, event.StateQueued, nil)
	p.state(0, 2, event.StateDispatched, nil)
	if decode, _, r := picks(); r.ID != 2 || slices.Max(decode) != 0 || r.Hits(metric.Decode).Tokens != 0 {
		t.Errorf("request %d starts with %v", r.ID, decode)
	}
	p.emitPicks(1, 2, []uint64{4, 1}, []uint64{6, 2}, [2]uint64{metric.Prompt: 5, metric.Decode: 8})
	if decode, both, r := picks(); !slices.Equal(decode, []uint64{5, 0}) || !slices.Equal(both, []uint64{5, 1}) || r.Hits(metric.Both).Tokens != 6 {
		t.Errorf("request 2: %v, %v", decode, both)
	}
	p.state(0, 3, event.StateQueued, nil)
	p.state(0, 3, event.StateDispatched, nil)
	if _, _, r := picks(); r.ID != 3 || r.Concurrent != 1 {
		t.Errorf("request %d: %d concurrent, want 1", r.ID, r.Concurrent)
	}
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{1, 0}, [2]uint64{metric.Decode: 1}) // the engine restarted
	if decode, _, _ := picks(); !slices.Equal(decode, []uint64{1, 0}) {
		t.Errorf("after a restart %v", decode)
	}
	if again := early.Hits(metric.Decode).Counts; !slices.Equal(again, []uint64{1, 2}) {
		t.Errorf("the earlier snapshot has changed to %v", again)
	}
}

// BenchmarkApplyPicks measures the cost of a token with picks: for the built-in model, and for the largest whose pairs
// are counted.
func BenchmarkApplyPicks(b *testing.B) {
	for _, c := range [][3]int{{8, 16, 2}, {94, 256, 8}} {
		b.Run(fmt.Sprintf("%dx%d", c[0], c[1]), func(b *testing.B) {
			p := newSession()
			p.moe(c[0], c[1], c[2])
			p.queue(1, "code", "a")
			p.store.Drain()
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
