package store

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// TestHalfway checks that cumulative counts are divided near the middle, however often they are reported, and that both
// halves add up.
func TestHalfway(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newSession()
		decode, none := make([]uint64, 4), make([]uint64, 4)
		tokens, longest := uint64(0), uint64(0)
		reports := rapid.IntRange(1, 100).Draw(rt, "reports")
		for range reports {
			n := rapid.Uint64Range(0, 50).Draw(rt, "tokens")
			tokens, longest = tokens+n, max(longest, n)
			decode[rapid.IntRange(0, 3).Draw(rt, "expert")] += n
			p.emitPicks(1, 4, none, decode, [2]uint64{metric.Decode: tokens})
		}
		x := p.store.Snapshot().Experts
		if x.halves[metric.Prompt] != nil || x.StaticCache(metric.Prompt) != nil {
			rt.Fatal("prompts have halves without tokens")
		}
		half, r := x.halves[metric.Decode], x.StaticCache(metric.Decode)
		switch {
		case tokens == 0 && (half != nil || r != nil):
			rt.Fatal("halves without tokens")
		case half == nil && tokens > 0 && !r.SelfJudged:
			rt.Fatalf("judged without halves: %+v", r)
		case half == nil:
			return
		}
		h := half.Hits(metric.Decode)
		far := max(2*h.Tokens, tokens) - min(2*h.Tokens, tokens)
		if far > 2*longest+tokens/2 {
			rt.Fatalf("halfway at %d of %d tokens, at most %d at once", h.Tokens, tokens, longest)
		}
		if r.SelfJudged || r.Chosen != h.Tokens || r.Chosen+r.Judged != tokens || r.All.Picks != tokens-h.Tokens {
			rt.Fatalf("%d + %d of %d tokens, %d picks", r.Chosen, r.Judged, tokens, r.All.Picks)
		}
		if _, ok := r.All.Share(expertcache.LRU, 2); ok {
			rt.Fatal("LRU without the order of the picks")
		}
	})
}

// A single report, as of a file of counts, is not judged by other picks.
func TestStaticCacheOfOneTotal(t *testing.T) {
	p := newSession()
	p.emitPicks(1, 4, []uint64{5, 3, 1, 1}, make([]uint64, 4), [2]uint64{metric.Prompt: 10})
	s := p.store.Snapshot()
	r := ExpertCache(s, metric.Prompt)
	if ExpertCache(s, metric.Decode) != nil || r == nil || !r.SelfJudged || !slices.Equal(r.All.Hits[expertcache.Static], []uint64{0, 5, 8, 9, 10}) {
		t.Errorf("%+v", r)
	}
}

// The picks of single tokens give all policies; picks of prompts a static set.
func TestExpertCacheOfTokens(t *testing.T) {
	p := newSession()
	p.moe(1, 4, 1)
	p.queue(1, "code", "")
	p.queue(2, "prose", "")
	for i := range uint16(40) {
		p.tokenWithPicks(event.RequestID(1+i%2), i%2)
	}
	p.emitPicks(1, 4, []uint64{1, 0, 0, 0}, []uint64{20, 20, 0, 0}, [2]uint64{metric.Prompt: 1, metric.Decode: 40})
	s := p.store.Snapshot()
	r := ExpertCache(s, metric.Decode)
	for policy, want := range map[expertcache.Policy]float64{expertcache.Static: 0.5, expertcache.LRU: 0, expertcache.LFU: 0} {
		if got, ok := r.All.Share(policy, 1); !ok || got != want {
			t.Errorf("%v: one slot serves %v, want %v", policy, got, want)
		}
	}
	if share, _ := r.All.Share(expertcache.LRU, 2); share != 1 || len(r.Kinds) != 2 || r.Kinds[0].Tokens != 10 {
		t.Errorf("two slots serve %v; kinds %+v", share, r.Kinds)
	}
	if r := ExpertCache(s, metric.Prompt); !r.SelfJudged {
		t.Errorf("%+v", r)
	}
}
