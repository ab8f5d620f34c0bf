package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestClumps counts the answers whose messages come in clumps, and marks reasoning in them.
func TestClumps(t *testing.T) {
	for _, n := range []int{1, 12} {
		inBubble(t, func(t *testing.T) {
			s := begin(t, llama, Options{API: OpenAIChat}, map[string]http.HandlerFunc{
				"POST /v1/chat/completions": func(w http.ResponseWriter, _ *http.Request) {
					for range 5 {
						play(w, step{ms100, strings.Repeat(data(`{"id":"x","choices":[{"delta":{"reasoning":"so"}}]}`), n)})
					}
					play(w, step{ms100, data(`{"id":"x","choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}`) + data("[DONE]")})
				},
			})
			if got := s.do(t, engine.Request{Text: "x"}); got.Err != nil || int(s.Clumped.Load()) != n/12 {
				t.Errorf("%d in a read: %d answers in clumps, %v", n, s.Clumped.Load(), got.Err)
			}
			reasoning := int32(0)
			for _, e := range s.sink.OfKind(event.KindToken) {
				reasoning += e.Reasoning
			}
			if int(reasoning) != 5*n {
				t.Errorf("%d tokens of reasoning, want %d", reasoning, 5*n)
			}
			s.closed()
		})
	}
}
