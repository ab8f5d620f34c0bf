package prompts

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxTokens bounds the tokens of the prompts that a TokenHistory keeps, 4 bytes each.
const maxTokens = 1 << 20

// TokenHistory compares prompts of which only the tokens are known. The zero value is empty.
type TokenHistory struct {
	kept   []tokenPrompt // oldest first
	tokens int
}

type tokenPrompt struct {
	number event.RequestID
	tokens []int32
}

// Compare compares a prompt with the kept one that it has the longest beginning in common with, the newest of several.
// The sizes of the result are in tokens. The zero value: no kept prompt begins like it.
func (h *TokenHistory) Compare(tokens []int32) (b event.Reuse) {
	var best []int32
	for _, q := range slices.Backward(h.kept) {
		if n := commonTokens(tokens, q.tokens); n > b.Common {
			b.With, b.Common, best = q.number, n, q.tokens
		}
	}
	if best == nil {
		return b
	}
	b.Bytes = len(tokens)
	if b.Common == len(tokens) || b.Common == len(best) {
		return b // one goes on where the other ends
	}
	b.Kind, b.Place, b.At = event.BreakTokens, "prompt", b.Common
	b.Same = sameTokens(tokens[b.Common:], best[b.Common:])
	return b
}

// Keep remembers the prompt of a request, and drops the oldest ones beyond the bounds.
func (h *TokenHistory) Keep(number event.RequestID, tokens []int32) {
	h.kept, h.tokens = append(h.kept, tokenPrompt{number, tokens}), h.tokens+len(tokens)
	drop := 0
	for len(h.kept)-drop > maxPrompts || h.tokens > maxTokens && drop < len(h.kept) {
		h.tokens -= len(h.kept[drop].tokens)
		drop++
	}
	h.kept = slices.Delete(h.kept, 0, drop)
}

func commonTokens(a, b []int32) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// sameTokens returns how many tokens are the same after a break: at the same places if both are as long, or at the end.
func sameTokens(a, b []int32) (n int) {
	if len(a) == len(b) {
		for i := range a {
			if a[i] == b[i] {
				n++
			}
		}
		return n
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
