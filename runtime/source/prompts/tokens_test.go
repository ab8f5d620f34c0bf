package prompts

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestTokens(t *testing.T) {
	var h TokenHistory
	for i, c := range []struct {
		tokens []int32
		want   event.Reuse
	}{
		{[]int32{1, 2, 3, 4, 5}, event.Reuse{}},
		{[]int32{7, 2, 3, 4, 5}, event.Reuse{}},
		{[]int32{1, 2, 3, 4, 5, 6}, event.Reuse{With: 1, Common: 5, Bytes: 6}},
		{[]int32{1, 2, 9, 4, 5, 6}, event.Reuse{With: 3, Kind: event.BreakTokens, Place: "prompt", At: 2, Common: 2, Same: 3, Bytes: 6}},
		{[]int32{1, 2, 3, 8, 8, 5, 6}, event.Reuse{With: 3, Kind: event.BreakTokens, Place: "prompt", At: 3, Common: 3, Same: 2, Bytes: 7}},
		{[]int32{1, 2, 3}, event.Reuse{With: 5, Common: 3, Bytes: 3}},
		{nil, event.Reuse{}},
	} {
		if got := h.Compare(c.tokens); got != c.want {
			t.Errorf("prompt %d: %+v, want %+v", i+1, got, c.want)
		}
		h.Keep(event.RequestID(i+1), c.tokens)
	}
}

// The oldest prompts are dropped.
func TestTokenBounds(t *testing.T) {
	var h TokenHistory
	for i := range 3 * maxPrompts {
		h.Keep(event.RequestID(i+1), []int32{int32(i)})
	}
	if len(h.kept) != maxPrompts || h.tokens != maxPrompts || h.Compare([]int32{0}).With != 0 || h.Compare([]int32{3*maxPrompts - 1}).With == 0 {
		t.Errorf("%d prompts with %d tokens are kept", len(h.kept), h.tokens)
	}
	h.Keep(1, make([]int32, maxTokens))
	if len(h.kept) != 1 || h.tokens != maxTokens {
		t.Errorf("beside a long prompt: %d prompts with %d tokens", len(h.kept), h.tokens)
	}
}
