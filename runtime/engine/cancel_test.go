package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestCancel cancels a request in each state.
func TestCancel(t *testing.T) {
	e := newFake(t, 1, 512, 16)
	run(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		prompt := b.mustSubmit(t, strings.Repeat("a", 100), 4)
		queued := b.mustSubmit(t, "a", 4)
		queued.Cancel()
		if r := queued.Result(); r.State != event.StateCancelled || r.Reason != "cancelled" {
			t.Errorf("cancelled in the queue: %+v", r)
		}
		time.Sleep(2 * 16 * row) // during the prompt's third batch
		before := b.clock.Now()
		prompt.Cancel()
		r := prompt.Result()
		if r.State != event.StateCancelled || r.Prompt != 100 || r.Generated != 0 {
			t.Errorf("cancelled in its prompt: %+v", r)
		}
		if waited := time.Duration(b.clock.Now() - before); waited > 16*row {
			t.Errorf("cancelling took %v, more than a batch", waited)
		}
		decoding, err := b.Submit(engine.Request{Text: "a", IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		decoding.Cancel()
		if r := decoding.Result(); r.State != event.StateCancelled || r.Generated == 0 {
			t.Errorf("cancelled while decoding: %+v", r)
		}
		decoding.Cancel() // cancelling twice or after the end has no effect
		synctest.Wait()
		b.ends(t, prompt, queued, decoding)
	})
	if len(e.released) != 2 {
		t.Errorf("slots released: %v, want twice", e.released)
	}
}

// TestCancelByID cancels requests by id.
func TestCancelByID(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 1}, func(t *testing.T, b *bench) {
		running, queued, other := b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "d", 9), b.mustSubmit(t, "e", 1)
		time.Sleep(1500 * time.Millisecond)
		b.Cancel(99) // unknown id
		b.Cancel(queued.ID)
		b.Cancel(queued.ID)
		b.Cancel(running.ID)
		b.Cancel(running.ID)
		want(t, running, event.StateCancelled, "cancelled", "de")
		want(t, queued, event.StateCancelled, "cancelled", "")
		want(t, other, event.StateFinished, "length", "f")
		b.Cancel(running.ID)
		b.Cancel(other.ID)
		synctest.Wait()
		b.ends(t, running, queued, other)
	})
}

// TestCancelledCellsAreFreed checks that a cancelled request's KV cells are reported and freed.
func TestCancelledCellsAreFreed(t *testing.T) {
	run(t, newFake(t, 2, 64, 16), engine.Options{Pace: 1}, func(t *testing.T, b *bench) {
		cancelled, stays := b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "fg", 9)
		time.Sleep(1500 * time.Millisecond) // both have their prompt and one more token in the cache
		cancelled.Cancel()
		<-cancelled.Done()
		kv := b.byKind(event.KindKV, 0)
		held := 1500*time.Millisecond - 2*fakeTokenize
		wanted := event.KV{Used: 3, Total: 128, Freed: 4, Residency: int64(held)}
		if got := *kv[len(kv)-1].Data.(*event.KV); got != wanted {
			t.Errorf("after cancelling, the KV cache is %+v, want %+v", got, wanted)
		}
		stays.Cancel()
	})
}

// TestQueueKeepsItsOrder also if a waiting request is cancelled.
func TestQueueKeepsItsOrder(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		var handles []*engine.Handle
		for range 6 {
			handles = append(handles, b.mustSubmit(t, "abc", 3))
		}
		handles[3].Cancel()
		for _, h := range handles {
			<-h.Done()
		}
		var order []event.RequestID
		for _, e := range b.byKind(event.KindRequest, 0) {
			if e.State == event.StateDispatched {
				order = append(order, e.Req)
			}
		}
		if fmt.Sprint(order) != "[1 2 3 5 6]" {
			t.Errorf("dispatched in the order %v", order)
		}
	})
}

// TestConcurrentClients submits, cancels and changes settings concurrently: every request ends once, with the tokens that its
// events report.
func TestConcurrentClients(t *testing.T) {
	run(t, newFake(t, 3, 64, 16), engine.Options{Mixed: 4}, func(t *testing.T, b *bench) {
		var mu sync.Mutex
		var handles []*engine.Handle
		var clients sync.WaitGroup
		for c := range 8 {
			rnd := rand.New(rand.NewPCG(uint64(c), 0))
			clients.Go(func() {
				for range 40 {
					time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
					h, err := b.Submit(engine.Request{
						Text: strings.Repeat("a", 1+rnd.IntN(70)), MaxTokens: rnd.IntN(9), Picks: c == 0, SendText: true,
					})
					if err != nil {
						continue // the queue is full
					}
					mu.Lock()
					handles = append(handles, h)
					mu.Unlock()
					time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
					switch rnd.IntN(6) {
					case 0:
						h.Cancel()
					case 1:
						b.Cancel(h.ID)
					case 2:
						b.SetPace(float64(rnd.IntN(3)) * 500)
					case 3:
						b.SetHooks(engine.Hooks{Split: rnd.IntN(2) == 0, Experts: rnd.IntN(2) == 0})
					case 4:
						b.Pause()
						time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
						b.Resume()
					}
				}
			})
		}
		clients.Wait()
		b.Resume()
		for _, h := range handles {
			b.checkTokens(t, h)
		}
		b.ends(t, handles...)
		if len(handles) < 100 {
			t.Errorf("only %d requests were accepted", len(handles))
		}
	})
}

// checkTokens checks that the events report each token of a request, in order, and its text.
func (b *bench) checkTokens(t *testing.T, h *engine.Handle) {
	t.Helper()
	r := h.Result()
	tokens := b.byKind(event.KindToken, h.ID)
	if len(tokens) != len(r.IDs) || len(tokens) != r.Generated {
		t.Errorf("request #%d: %d token events, %d ids, %d generated", h.ID, len(tokens), len(r.IDs), r.Generated)
		return
	}
	var text strings.Builder
	for i, e := range tokens {
		if int(e.Index) != i || e.ID != r.IDs[i] {
			t.Errorf("request #%d: token %d is %d, the event has %d at %d", h.ID, i, r.IDs[i], e.ID, e.Index)
		}
		text.WriteString(e.Text)
	}
	if text.String() != r.Text {
		t.Errorf("request #%d: text %q, in the events %q", h.ID, r.Text, text.String())
	}
}
