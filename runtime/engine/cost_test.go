package engine_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// freeEngine computes nothing and has an unlimited context, so that only the scheduler's own cost remains.
type freeEngine struct{ *fakeEngine }

func newFree(t testing.TB, slots int) *freeEngine {
	return &freeEngine{newFake(t, slots, 1<<22, 64)}
}

// Forward sets only what the scheduler reads.
func (e *freeEngine) Forward(b *engine.Batch) error {
	b.Logits, b.Picks = b.Logits[:0], b.Picks[:0]
	for i, r := range b.Rows {
		if r.Logits {
			b.Logits = append(b.Logits, e.logits[i])
		}
		if e.hooks.Picks {
			b.Picks = append(b.Picks, e.picks[i])
		}
	}
	b.Time = engine.BatchTime{Embed: 1, Head: 1}
	if e.hooks.Split {
		b.Time.Layers = e.layers
	}
	return nil
}

func (e *freeEngine) Encode(dst []int32, text string, _ bool) []int32 {
	return append(dst, make([]int32, len(text))...)
}

func (e *freeEngine) Release(int) {}

// freeSampler always picks the same token.
type freeSampler struct{ fakeSampler }

func (freeSampler) Sample([]float32, []int32) (int32, float32) { return 'a', -0.5 }

// generate runs one request per slot, each of which generates the given number of tokens. It returns the memory
// allocations and the time from the moment when all have their first token to the end.
func generate(t testing.TB, slots, tokens int, r engine.Request, opt engine.Options) (allocs uint64, took time.Duration) {
	opt.Sampler = func(engine.Params, int) engine.Sampler { return freeSampler{} }
	watch := &firstTokens{left: slots}
	s := engine.New(loaded(newFree(t, slots)), opt)
	r.Text, r.MaxTokens = "abc", tokens
	handles := make([]*engine.Handle, slots)
	for i := range handles {
		h, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		handles[i] = h
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, watch) }()
	for _, h := range handles {
		if got := h.Result(); got.Generated != tokens || got.Err != nil {
			t.Errorf("request #%d ended after %d tokens, %v", h.ID, got.Generated, got.Err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return watch.allocs, watch.took
}

// firstTokens is a Sink that reads the allocation count when the last request has its first token and when a request
// ends. In between, only the scheduler's goroutine emits.
type firstTokens struct {
	left   int
	from   goruntime.MemStats
	begin  time.Time
	allocs uint64
	took   time.Duration
}

func (w *firstTokens) Emit(e event.Event) {
	switch {
	case e.Kind == event.KindToken && e.Index == 0:
		if w.left--; w.left == 0 {
			goruntime.ReadMemStats(&w.from)
			w.begin = time.Now()
		}
	case e.Kind == event.KindRequest && e.State == event.StateFinished && w.took == 0:
		w.took = time.Since(w.begin)
		var to goruntime.MemStats
		goruntime.ReadMemStats(&to)
		w.allocs = to.Mallocs - w.from.Mallocs
	}
}

// everything requests all optional data of token events.
var everything = engine.Request{SendText: true, Picks: true, TopLogprobs: 2}

// TestTokensDoNotAllocate: the data of token events is cut from arrays that serve hundreds of tokens.
func TestTokensDoNotAllocate(t *testing.T) {
	const tokens = 20_000
	for _, slots := range []int{1, 4} {
		for name, r := range map[string]engine.Request{"plain": {}, "everything": everything} {
			hooks := engine.Hooks{Split: true, Experts: true}
			allocs, _ := generate(t, slots, tokens, r, engine.Options{Hooks: hooks})
			if most := uint64(slots * tokens / 100); allocs > most {
				t.Errorf("%s, %d slots: %d allocations for %d tokens, want at most %d", name, slots, allocs, slots*tokens, most)
			}
		}
	}
}

// BenchmarkToken measures the scheduler's time per token, with all events built and discarded.
func BenchmarkToken(b *testing.B) {
	for _, slots := range []int{1, 4, 16} {
		for _, c := range []struct {
			name    string
			request engine.Request
			hooks   engine.Hooks
		}{
			{"plain", engine.Request{}, engine.Hooks{}},
			{"everything", everything, engine.Hooks{Split: true, Experts: true}},
		} {
			b.Run(fmt.Sprintf("%s/slots=%d", c.name, slots), func(b *testing.B) {
				tokens := max(b.N/slots, 2)
				allocs, took := generate(b, slots, tokens, c.request, engine.Options{Hooks: c.hooks})
				made := float64((tokens - 1) * slots)
				b.ReportMetric(float64(took)/made, "ns/token")
				b.ReportMetric(float64(allocs)/made, "allocs/token")
				b.ReportMetric(0, "ns/op") // includes the set-up
			})
		}
	}
}
