package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// shape describes a batch, for example "s0:d1 s1:p12*", with a star where logits of a prompt are requested.
func shape(rows []engine.Row) string {
	var parts []string
	for i := 0; i < len(rows); {
		n := 1
		for i+n < len(rows) && rows[i+n].Slot == rows[i].Slot {
			n++
		}
		phase, star := "d", ""
		if rows[i].Prompt {
			phase = "p"
			if rows[i+n-1].Logits {
				star = "*"
			}
		}
		parts = append(parts, fmt.Sprintf("s%d:%s%d%s", rows[i].Slot, phase, n, star))
		i += n
	}
	return strings.Join(parts, " ")
}

func shapes(batches [][]engine.Row) string {
	var lines []string
	for _, rows := range batches {
		lines = append(lines, shape(rows))
	}
	return strings.Join(lines, "\n")
}

// TestBatches checks the policy: prompts get whole batches while no request decodes, small pieces otherwise, oldest
// prompt first; all decoding requests share one batch.
func TestBatches(t *testing.T) {
	e := newFake(t, 3, 64, 16)
	run(t, e, engine.Options{Mixed: 6}, func(t *testing.T, b *bench) {
		for _, prompt := range []string{strings.Repeat("a", 20), strings.Repeat("b", 15), "x"} {
			b.mustSubmit(t, prompt, 6)
		}
		synctest.Wait()
		time.Sleep(time.Second)
	})
	wanted := `s0:p16
s0:p4* s1:p12
s0:d1 s1:p3* s2:p1*
s0:d1 s1:d1 s2:d1
s0:d1 s1:d1 s2:d1
s0:d1 s1:d1
s0:d1 s1:d1
s1:d1`
	if got := shapes(e.batches); got != wanted {
		t.Errorf("batches\n%s\nwant\n%s", got, wanted)
	}
}

// TestDecodingIsNotStarved: while a long prompt is processed, every other request is in every batch.
func TestDecodingIsNotStarved(t *testing.T) {
	e := newFake(t, 2, 1024, 256)
	run(t, e, engine.Options{Mixed: 32}, func(t *testing.T, b *bench) {
		b.mustSubmit(t, "a", 20)
		time.Sleep(time.Millisecond)
		want(t, b.mustSubmit(t, strings.Repeat("c", 320), 1), event.StateFinished, "length", "d")
	})
	mixed := 0
	for _, rows := range e.batches[1:] {
		if rows[0].Prompt && len(rows) > 1 {
			t.Errorf("a batch has only prompt rows while a request decodes: %s", shape(rows))
		}
		if len(rows) > 1 {
			mixed++
		}
	}
	if mixed != 10 {
		t.Errorf("320 prompt tokens took %d mixed batches, want 10 of 32", mixed)
	}
}

// TestMoreSlotsThanRows: only as many slots are used as a batch has rows.
func TestMoreSlotsThanRows(t *testing.T) {
	run(t, newFake(t, 8, 64, 2), engine.Options{}, func(t *testing.T, b *bench) {
		var handles []*engine.Handle
		for range 5 {
			handles = append(handles, b.mustSubmit(t, "abc", 5))
		}
		for _, h := range handles {
			want(t, h, event.StateFinished, "length", "defgh")
		}
	})
}

// TestExtras requests picks and alternatives; the engine returns picks only while a request wants them.
func TestExtras(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	run(t, e, engine.Options{Hooks: engine.Hooks{Experts: true}}, func(t *testing.T, b *bench) {
		plain := b.mustSubmit(t, "abc", 2)
		h, err := b.Submit(engine.Request{Text: "abc", MaxTokens: 3, Picks: true, TopLogprobs: 2, SendText: true})
		if err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		<-plain.Done()
		synctest.Wait()
		if (e.hooks != engine.Hooks{Experts: true}) {
			t.Errorf("hooks are %+v after the request that wanted picks", e.hooks)
		}
		for i, token := range b.byKind(event.KindToken, h.ID) {
			if len(token.Picks) != fakeLayers*fakeUsed || !slices.Equal(token.Picks[:fakeUsed], []uint16{0, uint16(i + 2)}) {
				t.Errorf("token %d has picks %v, want those of the row at %d in ascending order", i, token.Picks, i+2)
			}
			if len(token.Top) != 2 || token.Top[1].Text != "b" {
				t.Errorf("token %d has alternatives %v", i, token.Top)
			}
		}
		for _, token := range b.byKind(event.KindToken, plain.ID) {
			if token.Picks != nil || token.Top != nil {
				t.Errorf("a token has extras that were not requested: %v", token)
			}
		}
	})
}

// TestHandover checks that a token says how long after it was sampled its text was handed over.
func TestHandover(t *testing.T) {
	e := newFake(t, 1, 64, 16)
	e.pieceTime = 2 * time.Millisecond
	run(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		for _, text := range []bool{false, true} {
			h, err := b.Submit(engine.Request{Text: "abc", MaxTokens: 3, IgnoreEOS: true, SendText: text})
			if err != nil {
				t.Fatal(err)
			}
			<-h.Done()
			synctest.Wait()
			want := uint32(0)
			if text {
				want = uint32(e.pieceTime)
			}
			for i, token := range b.byKind(event.KindToken, h.ID) {
				if token.Handover != want {
					t.Errorf("token %d was handed over %d ns later, want %d", i, token.Handover, want)
				}
			}
		}
	})
}

// TestGroups: the group of a request is in its events.
func TestGroups(t *testing.T) {
	run(t, newFake(t, 2, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		for _, group := range []string{"red", "", "red"} {
			h, err := b.Submit(engine.Request{Text: "abc", MaxTokens: 2, Group: group, Label: "l", Probe: true})
			if err != nil {
				t.Fatal(err)
			}
			q := b.byKind(event.KindRequest, h.ID)[0].Data.(*event.Request)
			if q.Group != group || q.Label != "l" || !q.Probe || q.Prompt != "" {
				t.Errorf("request is announced as %+v", q)
			}
		}
	})
}
