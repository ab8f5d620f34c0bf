//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// tape is a sink that keeps events and calls on with each.
type tape struct {
	sync.Mutex
	events []event.Event
	on     func(event.Event)
}

func (s *tape) Emit(e event.Event) {
	s.Lock()
	s.events = append(s.events, e)
	s.Unlock()
	if s.on != nil {
		s.on(e)
	}
}

// scheduled runs a scheduler on an engine until the test ends.
func scheduled(t *testing.T, e *Engine, sink *tape, opt engine.Options) *engine.Scheduler {
	t.Helper()
	opt.Sampler = func(engine.Params, int) engine.Sampler { return greedySampler{} }
	s := engine.New(func(context.Context, func(engine.LoadStage)) (engine.Engine, error) { return e, nil }, opt)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// greedySampler picks the likeliest token.
type greedySampler struct{}

func (greedySampler) Sample(logits []float32, _ []int32) (int32, float32) { return argmax(logits), 0 }

func (greedySampler) TopLogprobs(dst []event.TopProb, _ []float32, _ int) []event.TopProb { return dst }

// bareOpen opens the built-in model for a scheduler, which closes it.
func bareOpen(t *testing.T, o Options) *Engine {
	t.Helper()
	o.Model, o.Libraries, o.Threads = demoFile(t), libraries(t), 1
	e, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func submit(t *testing.T, s *engine.Scheduler, r engine.Request) *engine.Handle {
	t.Helper()
	h, err := s.Submit(r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestConversation: the second turn reuses the cache of the first; its answer is the same as without the cache.
func TestConversation(t *testing.T) {
	g := readGolden(t).Texts[0]
	sink := &tape{}
	s := scheduled(t, bareOpen(t, Options{Context: 512, Slots: 2}), sink, engine.Options{Reuse: true, Hooks: engine.Hooks{Experts: true, Split: true}})
	first := submit(t, s, engine.Request{IDs: g.Prompt, MaxTokens: 20, IgnoreEOS: true}).Result()
	if !slices.Equal(first.IDs, g.Greedy[:20]) {
		t.Errorf("decoded %v, want %v", first.IDs, g.Greedy[:20])
	}
	turn := slices.Concat(g.Prompt, first.IDs, []int32{300, 301, 302})
	h := submit(t, s, engine.Request{IDs: turn, MaxTokens: 12, IgnoreEOS: true})
	second := h.Result()
	if want := len(g.Prompt) + 19; second.Cached != want || second.Prompt != len(turn) {
		t.Errorf("%d of %d tokens cached, want %d of %d", second.Cached, second.Prompt, want, len(turn))
	}
	fresh := submit(t, s, engine.Request{IDs: turn, MaxTokens: 12, IgnoreEOS: true, Fresh: true}).Result()
	if fresh.Cached != 0 || !slices.Equal(second.IDs, fresh.IDs) {
		t.Errorf("decoded %v after the first turn, %v without", second.IDs, fresh.IDs)
	}
	sink.Lock()
	defer sink.Unlock()
	seen := map[event.Kind]bool{}
	for _, e := range sink.events {
		seen[e.Kind] = true
		if x, ok := e.Data.(*event.Experts); ok && x.EveryN < 1 {
			t.Errorf("picks of 1 in %d passes", x.EveryN)
		}
		if e.Kind == event.KindStage && e.Req == h.ID && e.Stage == event.StagePrompt && int(e.N) != len(turn)-second.Cached {
			t.Errorf("the prompt's stage covers %d tokens, want %d", e.N, len(turn)-second.Cached)
		}
	}
	for _, k := range []event.Kind{event.KindEngine, event.KindModel, event.KindRequest, event.KindStage, event.KindToken, event.KindKV, event.KindStep, event.KindExperts} {
		if !seen[k] {
			t.Errorf("no event of kind %v", k)
		}
	}
}

// TestCancelBetweenBatches cancels a long prompt after its first batch: no further batch runs, and the next request
// reuses the first.
func TestCancelBetweenBatches(t *testing.T) {
	var s *engine.Scheduler
	var once sync.Once
	sink := &tape{on: func(e event.Event) {
		if e.Kind == event.KindStep {
			once.Do(func() { s.Cancel(1) })
		}
	}}
	prompt := make([]int32, 400)
	for i := range prompt {
		prompt[i] = int32(100 + i)
	}
	e := bareOpen(t, Options{Context: 512, Batch: 64})
	s = scheduled(t, e, sink, engine.Options{Reuse: true})
	h := submit(t, s, engine.Request{IDs: prompt, MaxTokens: 5})
	if r := h.Result(); r.State != event.StateCancelled || r.Generated != 0 {
		t.Errorf("ended %v with %d tokens", r.State, r.Generated)
	}
	if r := submit(t, s, engine.Request{IDs: prompt, MaxTokens: 1}).Result(); r.Cached != 64 {
		t.Errorf("%d tokens cached after the cancelled request, want its one batch of 64", r.Cached)
	}
}

// TestManyRequests runs more texts than slots, in batches with prompt and decode rows; each text is the same as alone.
func TestManyRequests(t *testing.T) {
	texts := readGolden(t).Texts
	s := scheduled(t, bareOpen(t, Options{Context: 256, Slots: 3, Batch: 32}), &tape{}, engine.Options{Mixed: 8, Hooks: engine.Hooks{Experts: true, Every: 3}})
	var handles []*engine.Handle
	for range 2 {
		for _, text := range texts {
			handles = append(handles, submit(t, s, engine.Request{IDs: text.Prompt, MaxTokens: 16, IgnoreEOS: true}))
		}
	}
	for i, h := range handles {
		text := texts[i%len(texts)]
		if r := h.Result(); r.State != event.StateFinished || !slices.Equal(r.IDs, text.Greedy[:16]) {
			t.Errorf("%s: %v, %v, want %v", text.Kind, r.State, r.IDs, text.Greedy[:16])
		}
	}
}

// TestContextEnds: a text ends when the context is full, and a prompt that does not fit is rejected.
func TestContextEnds(t *testing.T) {
	s := scheduled(t, bareOpen(t, Options{Context: 48}), &tape{}, engine.Options{})
	if r := submit(t, s, engine.Request{Text: "func main", IgnoreEOS: true}).Result(); r.Reason != "length" || r.Prompt+r.Generated != 49 {
		t.Errorf("ended by %q after %d and %d tokens", r.Reason, r.Prompt, r.Generated)
	}
	if r := submit(t, s, engine.Request{Text: strings.Repeat("func main ", 50)}).Result(); r.State != event.StateFailed {
		t.Errorf("a prompt longer than the context ended %v", r.State)
	}
}
