package proxy

import (
	"net/http"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// TestReasoningInStreams checks for each way to stream reasoning which tokens are marked as such.
func TestReasoningInStreams(t *testing.T) {
	data := func(text string) string { return "data: " + text + "\n\n" }
	delta := func(members string) string {
		return data(`{"id":"x","choices":[{"index":0,"delta":{` + members + `}}]}`)
	}
	claude := func(kind, text string) string {
		return data(`{"type":"content_block_delta","delta":{"type":"` + kind + `_delta","` + kind + `":"` + text + `"}}`)
	}
	const answer = `"content":"yes"`
	for name, c := range map[string]struct {
		path, kind string
		pieces     []string
		want       string // of each event: r reasoning, a answer
	}{
		"vLLM":               {chat, stream, []string{delta(`"role":"assistant","content":""`), delta(`"reasoning":"so"`), delta(`"reasoning":"so"`), delta(answer)}, "r r a"},
		"llama.cpp, SGLang":  {chat, stream, []string{delta(`"reasoning_content":"so","content":null`), delta(answer)}, "r a"},
		"gateways, details":  {chat, stream, []string{delta(`"reasoning_details":[{"type":"reasoning.text","text":"so"}]`), delta(answer)}, "r a"},
		"gateways, twice":    {chat, stream, []string{delta(`"reasoning":"so","reasoning_details":[{"text":"so"}]`), delta(answer)}, "r a"},
		"a tool call":        {chat, stream, []string{delta(`"reasoning":"so"`), delta(`"tool_calls":[{"index":0,"function":{"name":"look","arguments":""}}]`)}, "r a"},
		"in one message":     {chat, stream, []string{delta(`"reasoning":"so"`), delta(`"reasoning":"so","content":"yes"`)}, "r a"},
		"in one read":        {chat, stream, []string{delta(`"reasoning":"so"`) + delta(`"reasoning":"so"`) + delta(answer)}, "rra"},
		"again, in one read": {chat, stream, []string{delta(answer) + delta(`"reasoning":"so"`)}, "a r"},
		"Responses":          {"/v1/responses", stream, []string{data(`{"type":"response.reasoning_text.delta","delta":"so"}`), data(`{"type":"response.output_text.delta","delta":"yes"}`)}, "r a"},
		"Responses, summary": {"/v1/responses", stream, []string{data(`{"type":"response.reasoning_summary_text.delta","delta":"so"}`), data(`{"type":"response.function_call_arguments.delta","delta":"{"}`)}, "r a"},
		"Anthropic":          {"/v1/messages", stream, []string{claude("thinking", "so"), claude("text", "yes")}, "r a"},
		"Ollama":             {"/api/chat", lined, []string{`{"message":{"thinking":"so"}}` + "\n", `{"message":{"content":"yes"}}` + "\n"}, "r a"},
		"Ollama, generate":   {"/api/generate", lined, []string{`{"thinking":"so"}` + "\n", `{"response":"yes"}` + "\n"}, "r a"},
		"tags in a text":     {chat, stream, []string{delta(`"content":"<think>"`), delta(answer)}, "a a"},
	} {
		var pieces [][]byte
		for _, p := range c.pieces {
			pieces = append(pieces, []byte(p))
		}
		_, events := observe(answers.Of(c.path), http.StatusOK, typed(c.kind, ""), pieces)
		got := ""
		for _, e := range events {
			if e.Kind != event.KindToken {
				continue
			}
			if got != "" {
				got += " "
			}
			for i := range e.N {
				got += map[bool]string{true: "r", false: "a"}[i < e.Reasoning]
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
