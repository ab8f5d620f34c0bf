package store

import (
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestPackedTokensAreTheSame checks that any tokens are the same after packing, also for several readers at once and
// after what was unpacked has been collected.
func TestPackedTokensAreTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(rapid.Make[Token](), 0, 40).Draw(rt, "tokens")
		l := TokenList{open: want}.pack()
		if l.Len() != len(want) {
			rt.Fatalf("%d tokens, want %d", l.Len(), len(want))
		}
		var all sync.WaitGroup
		var got [3][]Token
		for i := range got {
			all.Go(func() { got[i] = l.All() })
		}
		all.Wait()
		for _, got := range append(got[:], l.All()) {
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); d != "" {
				rt.Fatalf("-open +packed:\n%s", d)
			}
		}
	})
}

// TestEndedRequestsAreBoundedInBytes checks that MaxRequests ended requests with full lists take no more memory than
// documented at the constants.
func TestEndedRequestsAreBoundedInBytes(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const limit = 48_000 * MaxRequests // bytes
	p := newSession()
	before := heapInUse()
	for id := range event.RequestID(MaxRequests) {
		p.state(us, id+1, event.StateQueued, nil)
		for i := range MaxTokens {
			picks := make([]uint16, 2*8)
			for k := range picks {
				picks[k] = uint16((int(id) + i*k) % 16)
			}
			ns := uint32(i*7919) % 10_000
			p.emit(int64(25_000_000+ns*17), event.Event{
				Kind: event.KindToken, Req: id + 1, ID: int32(i*7919) % 4096, Index: int32(i), N: 1, Step: uint64(i + 1), Text: " word", Picks: picks,
				Split: event.Split{Embed: 900, Attention: 170_000 + ns, Router: 12_000 + ns/10, Experts: 330_000 + ns, Head: 61_000 + ns/2, Sample: 7_000 + ns/10}, Layer: -1,
			})
		}
		p.state(us, id+1, event.StateFinished, nil)
		p.store.Drain()
	}
	s := p.store.Snapshot()
	runtime.GC()
	grown := heapInUse() - before
	t.Logf("%d bytes per request", grown/MaxRequests)
	if n := s.Requests[0].Tokens.Len(); len(s.Requests) != MaxRequests || n != MaxTokens || grown > limit {
		t.Errorf("%d requests of %d tokens in %d kB, limit %d", len(s.Requests), n, grown>>10, limit>>10)
	}
	runtime.KeepAlive(p)
}

func BenchmarkPackTokens(b *testing.B) {
	p := newSession()
	p.playRequest(1, ms, ms, MaxTokens)
	packed := p.request(b, 1).Tokens
	list := TokenList{open: packed.All()}
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list.pack()
		}
		b.ReportMetric(float64(len(packed.packed.fields)+len(packed.packed.text))/MaxTokens, "bytes/token")
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			packed.packed.unpack()
		}
	})
}
