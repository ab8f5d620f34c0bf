package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/answers"
)

// TestTokensThatWereNotStreamed checks in each dialect that TPOT counts neither reasoning that the server counts and hides,
// nor what a program streams before the model answers, nor the tokens of the first message.
func TestTokensThatWereNotStreamed(t *testing.T) {
	sent := func(n int, text string) []string { return slices.Repeat([]string{"data: " + text + "\n\n"}, n) }
	const word, loading = `{"id":"c","choices":[{"delta":{"content":"w"}}]}`, `{"choices":[{"delta":{"reasoning_content":"loading"}}]}`
	usage := func(text string) string {
		return `data: {"id":"c","choices":[],"usage":` + text + "}\n\ndata: [DONE]\n\n"
	}
	delta := func(kind string) string { return `{"type":"response.` + kind + `.delta","delta":"w"}` }
	done := func(details string) string {
		return `data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":512` + details + "}}}\n\n"
	}
	claude := `{"type":"content_block_delta","delta":{"type":"text_delta","text":"w"}}`
	stopped := func(u string) string {
		return `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + u + "}\n\ndata: {\"type\":\"message_stop\"}\n\n"
	}
	ollama := func(n int, text string) []string { return slices.Repeat([]string{text + "\n"}, n) }
	for name, c := range map[string]struct {
		path, kind string
		pieces     []string
		later, all int // later -1: unknown
	}{
		"chat, details": {chat, stream, append(sent(32, word), usage(`{"completion_tokens":512,"completion_tokens_details":{"reasoning_tokens":480}}`)), 31, 512},
		"chat, SGLang":  {chat, stream, append(sent(32, word), usage(`{"completion_tokens":512,"reasoning_tokens":480}`)), 31, 512},
		"chat, reasoning beside the rest": {
			chat, stream, append(sent(32, word), usage(`{"prompt_tokens":10,"completion_tokens":32,"total_tokens":522,"completion_tokens_details":{"reasoning_tokens":480}}`)), 31, 512,
		},
		"chat, no details":      {chat, stream, append(sent(32, word), usage(`{"completion_tokens":512}`)), -1, 512},
		"chat, zero details":    {chat, stream, append(sent(32, word), usage(`{"completion_tokens":512,"completion_tokens_details":{"reasoning_tokens":0}}`)), -1, 512},
		"chat, running count":   {chat, stream, append(append(sent(1, `{"id":"c","choices":[{"delta":{"content":"w"}}],"usage":{"completion_tokens":481}}`), sent(1, `{"id":"c","choices":[{"delta":{"content":"w"}}],"usage":{"completion_tokens":482}}`)...), usage(`{"completion_tokens":482}`)), 1, 482},
		"chat, logprobs":        {chat, stream, append(sent(5, `{"id":"c","choices":[{"delta":{"content":"a"},"logprobs":{"content":[{},{},{},{}]}}]}`), usage(`{"completion_tokens":20}`)), 16, 20},
		"completions, logprobs": {"/v1/completions", stream, append(sent(5, `{"id":"c","choices":[{"text":"a","logprobs":{"tokens":["a","b"]}}]}`), usage(`{"completion_tokens":10}`)), 8, 10},
		"chat, a model loads":   {chat, stream, append(append(sent(16, loading), sent(20, word)...), usage(`{"completion_tokens":20}`)), 19, 20},
		"responses, details":    {"/v1/responses", stream, append(sent(32, delta("output_text")), done(`,"output_tokens_details":{"reasoning_tokens":480}`)), 31, 512},
		"responses, a summary":  {"/v1/responses", stream, append(append(sent(9, delta("reasoning_summary_text")), sent(32, delta("output_text"))...), done(`,"output_tokens_details":{"reasoning_tokens":480}`)), -1, 512},
		"messages, no details":  {"/v1/messages", stream, append(sent(32, claude), stopped(`{"output_tokens":512}`)), -1, 512},
		"messages, details":     {"/v1/messages", stream, append(sent(32, claude), stopped(`{"output_tokens":512,"output_tokens_details":{"thinking_tokens":480}}`)), 31, 512},
		"Ollama, hidden":        {"/api/chat", lined, append(ollama(32, `{"message":{"content":"w"}}`), `{"done":true,"eval_count":512}`+"\n"), -1, 512},
		"Ollama, thinking":      {"/api/chat", lined, append(append(ollama(32, `{"message":{"thinking":"w"}}`), ollama(8, `{"message":{"content":"w"}}`)...), `{"done":true,"eval_count":41}`+"\n"), 40, 41},
	} {
		var pieces [][]byte
		for _, p := range c.pieces {
			pieces = append(pieces, []byte(p))
		}
		o, _ := observe(answers.Of(c.path), http.StatusOK, typed(c.kind, ""), pieces)
		got := o.Outcome()
		if got.AnyLater {
			got.Later = -1
		}
		_, end := o.Finish(answers.End{Complete: true})
		if got.Later != c.later || got.Generated != c.all || strings.HasPrefix(end.Reason, "not read") {
			t.Errorf("%s: %d after the first message of %d, %q; want %d of %d", name, got.Later, got.Generated, end.Reason, c.later, c.all)
		}
	}
}
