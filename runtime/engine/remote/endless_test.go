package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestEndlessAnswers: an endless answer fails its request, and only a limited part of it is kept.
func TestEndlessAnswers(t *testing.T) {
	const chunk = `{"choices":[{"text":"%s"%s}]}`
	ids := `,"token_ids":[1` + strings.Repeat(",1", 999) + `]`
	for name, c := range map[string]struct {
		message string
		asked   int
		want    string
		tokens  int
	}{
		"tokens":              {strings.Repeat(data(chunk, "x", ""), 1000), 8, "more than 262144 tokens", 1<<18 + 1},
		"more were asked for": {strings.Repeat(data(chunk, "x", ids), 10), 200_000, "more than 400000 tokens", 401_000},
		"token ids":           {strings.Repeat(data(chunk, "x", ids), 10), 8, "more than 262144 tokens", 263_000},
		"text":                {data(chunk, strings.Repeat("x", 4<<20), ""), 8, "more than 512 MiB", 128},
		"comments":            {": " + strings.Repeat("x", 4<<20) + "\n\n", 8, "more than 512 MiB", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ended := make(chan struct{})
				s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
					"POST /v1/completions": func(w http.ResponseWriter, _ *http.Request) {
						defer close(ended)
						for {
							if _, err := io.WriteString(w, c.message); err != nil {
								return
							}
						}
					},
				})
				kept := &kept{Log: s.sink}
				<-s.Client.ready
				s.Client.sink = kept
				got := s.do(t, engine.Request{Text: "p", MaxTokens: c.asked, SendText: true})
				if got.State != event.StateFailed || got.Err == nil || !strings.Contains(got.Err.Error(), c.want) {
					t.Errorf("%v, %v; want an error with %q", got.State, got.Err, c.want)
				}
				if len(got.Text) > maxText || len(got.IDs) > c.tokens || kept.tokens != c.tokens || kept.longest > maxPiece {
					t.Errorf("%d bytes of text, %d ids, %d tokens in events of up to %d bytes of text; want %d tokens",
						len(got.Text), len(got.IDs), kept.tokens, kept.longest, c.tokens)
				}
				<-ended
				s.closed()
			})
		})
	}
}

// kept counts what events hold of an answer, and keeps no token events.
type kept struct {
	*eventtest.Log
	tokens  int
	longest int // bytes of text in one event
}

// Emit implements event.Sink.
func (k *kept) Emit(e event.Event) {
	if e.Kind != event.KindToken {
		k.Log.Emit(e)
		return
	}
	k.tokens += int(e.N)
	k.longest = max(k.longest, len(e.Text))
}

// TestLongAnswerIsNotEndless: an answer within the limits is complete.
func TestLongAnswerIsNotEndless(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 1000
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, _ *http.Request) {
				for i := range n {
					_, _ = fmt.Fprint(w, data(`{"choices":[{"text":"%03d","token_ids":[%d]}]}`, i, i))
				}
				_, _ = io.WriteString(w, data(`{"choices":[{"text":"","finish_reason":"stop"}]}`)+data("[DONE]"))
			},
		})
		got := s.do(t, engine.Request{Text: "p", SendText: true})
		if got.State != event.StateFinished || len(got.Text) != 3*n || len(got.IDs) != n || got.Generated != n {
			t.Errorf("%v, %v: %d bytes, %d ids, %d tokens", got.State, got.Err, len(got.Text), len(got.IDs), got.Generated)
		}
		s.closed()
	})
}
