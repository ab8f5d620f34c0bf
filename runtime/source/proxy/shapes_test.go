package proxy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "answers", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const stream, lined = "text/event-stream; charset=utf-8", "application/x-ndjson"

// shapes are answers as servers send them, chunk by chunk, with the number of tokens in each.
var shapes = []struct {
	name, file   string // file of testdata; if empty, chunks
	path, kind   string
	request      string
	chunks       []string
	tokens       []int
	outcome      event.Outcome
	model, label string
	max          int
	warning      string
}{
	{
		name: "vLLM with token ids", file: "vllm_stream_chat.sse", path: "/v1/chat/completions", kind: stream,
		request: `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_completion_tokens":64,"stream":true}`,
		tokens:  []int{0, 1, 2, 1, 2, 0, 0, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 2560, Cached: 512, Generated: 7, Later: 6},
		model: "Qwen/Qwen3-30B-A3B", label: "chat", max: 64,
	},
	{
		name: "llama.cpp with prompt progress", file: "llamacpp_stream_chat_progress.sse", path: "/v1/chat/completions", kind: stream,
		request: `{"stream":true,"max_tokens":7}`, tokens: []int{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0},
		outcome: event.Outcome{Reason: "length", Prompt: 2560, Cached: 512, Generated: 4, Later: 3}, model: "qwen3-30b-a3b", label: "chat", max: 7,
	},
	{
		name: "mlx-lm keeps the connection alive with comments", file: "mlx_lm_stream.sse", path: "/chat/completions", kind: stream,
		tokens: []int{0, 0, 0, 1, 0}, outcome: event.Outcome{Generated: 1}, model: "m", label: "chat", warning: answers.MessageIsToken,
	},
	{
		name: "Ollama", file: "ollama_generate_stream.ndjson", path: "/api/generate", kind: lined,
		request: `{"model":"qwen3:30b-a3b","prompt":"why","options":{"num_predict":64,"stop":["x"]}}`,
		tokens:  []int{1, 1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 543, AnyCached: true, Cold: true, Generated: 64, AnyLater: true}, model: "qwen3:30b-a3b", label: "ollama generate", max: 64,
		warning: answers.NoTPOT,
	},
	{
		name: "Ollama, chat with a tool", path: "/api/chat", kind: lined, label: "ollama chat", model: "q", warning: answers.ITLOfMessages,
		chunks: []string{
			`{"model":"q","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}` + "\n",
			`{"model":"q","message":{"role":"assistant","content":""},"done":false}` + "\n",
			`{"model":"q","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},"done":false}` + "\n",
			`{"model":"q","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":5,"eval_count":9}` + "\n",
		},
		tokens: []int{1, 0, 1, 0}, outcome: event.Outcome{Reason: "length", Prompt: 5, AnyCached: true, Generated: 9, Later: 8},
	},
	{
		name: "completions with a running count", path: "/v1/completions", kind: stream, label: "completions", model: "c",
		chunks: []string{
			`data: {"model":"c","choices":[{"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n",
			`data: {"model":"c","choices":[{"text":"b c"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\n\n",
			`data: {"model":"c","choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 3, 0}, outcome: event.Outcome{Reason: "length", Prompt: 3, AnyCached: true, Generated: 4, Later: 3},
	},
	{
		name: "completions with a count at the end", path: "/v1/completions", kind: stream, label: "completions",
		chunks: []string{
			`data: {"choices":[{"text":"a"}]}` + "\r\n\r\n",
			`data: {"choices":[{"text":"b c"}]}` + "\r\n\r\n",
			`data: {"choices":[{"text":"d","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\r\n\r\ndata: [DONE]\r\n\r\n",
		},
		tokens: []int{1, 1, 1}, outcome: event.Outcome{Reason: "stop", Prompt: 3, AnyCached: true, Generated: 4, Later: 3},
	},
	{
		name: "reasoning in details, and once more beside them", path: "/v1/chat/completions", kind: stream, label: "chat",
		chunks: []string{
			`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"h"}]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"reasoning":"m","reasoning_details":[{"type":"reasoning.summary","summary":"m"}]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":3}}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 1, 0, 1}, outcome: event.Outcome{Reason: "stop", Prompt: 3, AnyCached: true, Generated: 3, Later: 2},
	},
	{
		name: "usage in a choice", path: "/v1/chat/completions", kind: stream, label: "chat", model: "kimi", warning: answers.ITLOfMessages,
		chunks: []string{
			`data: {"model":"kimi","choices":[{"delta":{"content":"a b"}}]}` + "\n\n",
			`data: {"model":"kimi","choices":[{"delta":{"content":"c d"}}]}` + "\n\n",
			`data: {"model":"kimi","choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":30,"completion_tokens":4,"cached_tokens":20}}]}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 30, Cached: 20, Generated: 4, Later: 2},
	},
	{
		name: "usage of Groq", path: "/v1/chat/completions", kind: stream, label: "chat", warning: answers.ITLOfMessages,
		chunks: []string{
			`data: {"choices":[{"delta":{"content":"a b"}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"content":"c d"}}]}` + "\n\n",
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":30,"completion_tokens":4}}}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 30, AnyCached: true, Generated: 4, Later: 2},
	},
	{
		name: "cache hits of DeepSeek", path: "/chat/completions", kind: stream, label: "chat",
		chunks: []string{
			`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n",
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":1,"prompt_cache_hit_tokens":16,"prompt_cache_miss_tokens":14}}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 30, Cached: 16, Generated: 1},
	},
	{
		name: "cached tokens of Ollama", path: "/api/generate", kind: lined, label: "ollama generate", model: "q",
		chunks: []string{
			`{"model":"q","response":"a","done":false}` + "\n",
			`{"model":"q","response":"","done":true,"done_reason":"stop","prompt_eval_count":200,"prompt_eval_cached_count":180,"eval_count":1}` + "\n",
		},
		tokens: []int{1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 200, Cached: 180, Generated: 1},
	},
	{
		name: "tool calls and a refusal", path: "/openai/deployments/d/chat/completions", kind: stream, label: "chat", warning: answers.MessageIsToken,
		chunks: []string{
			`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}}]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"refusal":"no"}}]}` + "\n\n",
			`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{0, 1, 1, 1, 0}, outcome: event.Outcome{Reason: "tool_calls", Generated: 3, Later: 2},
	},
	{
		name: "three messages in one read", path: "/v1/chat/completions", kind: "", label: "chat", warning: answers.MessageIsToken,
		chunks: []string{
			strings.Repeat(`data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n", 3),
			`data: {"choices":[{"delta":{"content":"`, `a"}}]}` + "\n", "\n",
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n",
		},
		tokens: []int{3, 0, 0, 1, 0}, outcome: event.Outcome{Reason: "stop", Generated: 4, Later: 1},
	},
	{
		name: "SGLang's own", path: "/generate", kind: stream, label: "generate", request: `{"text":"why","sampling_params":{"max_new_tokens":5},"stream":true}`, max: 5,
		chunks: []string{
			`data: {"text":"The","output_ids":[5],"meta_info":{"id":"x","prompt_tokens":9,"completion_tokens":1,"cached_tokens":4,"finish_reason":null}}` + "\n\n",
			`data: {"text":"The sky is","output_ids":[5,6,7],"meta_info":{"id":"x","prompt_tokens":9,"completion_tokens":3,"cached_tokens":4,"finish_reason":null}}` + "\n\n",
			`data: {"text":"The sky is blue.","output_ids":[5,6,7,8,9],"meta_info":{"id":"x","prompt_tokens":9,"completion_tokens":5,"cached_tokens":4,"finish_reason":{"type":"length","length":5}}}` + "\n\ndata: [DONE]\n\n",
		},
		tokens: []int{1, 2, 2}, outcome: event.Outcome{Reason: "length", Prompt: 9, Cached: 4, Generated: 5, Later: 4},
	},
	{
		name: "TGI's own", path: "/generate_stream", kind: stream, label: "generate", request: `{"inputs":"why","parameters":{"max_new_tokens":20}}`, max: 20,
		chunks: []string{
			`data:{"index":1,"token":{"id":5,"text":"The","logprob":-1.0,"special":false},"generated_text":null,"details":null}` + "\n\n",
			`data:{"index":2,"token":{"id":6,"text":" sky","logprob":-1.0,"special":false},"generated_text":null,"details":null}` + "\n\n",
			`data:{"index":3,"token":{"id":2,"text":"</s>","logprob":-1.0,"special":true},"generated_text":"The sky","details":{"finish_reason":"eos_token","generated_tokens":3,"input_length":9,"seed":null}}` + "\n\n",
		},
		tokens: []int{1, 1, 0}, outcome: event.Outcome{Reason: "stop", Prompt: 9, AnyCached: true, Generated: 3, Later: 2},
	},
	{
		name: "llama.cpp's infill", path: "/infill", kind: stream, label: "infill", request: `{"input_prefix":"a","n_predict":2}`, max: 2,
		chunks: []string{
			`data: {"index":0,"content":"a","tokens":[1],"stop":false,"id_slot":0,"tokens_predicted":1,"tokens_evaluated":9}` + "\n\n",
			`data: {"index":0,"content":"b","tokens":[1],"stop":false,"id_slot":0,"tokens_predicted":2,"tokens_evaluated":9}` + "\n\n",
			`data: {"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":2,"tokens_evaluated":9}` + "\n\n",
		},
		tokens: []int{1, 1, 0}, outcome: event.Outcome{Reason: "length", Prompt: 9, AnyCached: true, Generated: 2, Later: 1},
	},
	{
		name: "responses", path: "/v1/responses", kind: stream, label: "responses", model: "gpt", warning: answers.ITLOfMessages,
		chunks: []string{
			`event: response.created` + "\n" + `data: {"type":"response.created","response":{"model":"gpt","status":"in_progress","usage":null}}` + "\n\n",
			`data: {"type":"response.output_item.added","item":{"type":"reasoning"}}` + "\n\n",
			`data: {"type":"response.reasoning_text.delta","delta":"hm"}` + "\n\n",
			`data: {"type":"response.output_text.delta","delta":""}` + "\n\n",
			`data: {"type":"response.output_text.delta","delta":"yes"}` + "\n\n",
			`data: {"type":"response.output_text.done","text":"yes"}` + "\n\n",
			`data: {"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}` + "\n\n",
			`data: {"type":"response.function_call_arguments.delta","delta":"{"}` + "\n\n",
			`data: {"type":"response.incomplete","response":{"model":"gpt","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
				`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":6}}}` + "\n\n",
		},
		tokens: []int{0, 0, 1, 0, 1, 0, 1, 1, 0}, outcome: event.Outcome{Reason: "length", Prompt: 10, Cached: 4, Generated: 6, Later: 4},
	},
	{
		name: "messages", path: "/v1/messages", kind: stream, label: "messages", model: "claude", request: `{"max_tokens":100,"model":"x"}`, max: 100, warning: answers.NoTPOT,
		chunks: []string{
			"event: message_start\n" + `data: {"type":"message_start","message":{"model":"claude","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":2,"output_tokens":1}}}` + "\n\n",
			`data: {"type":"content_block_start","content_block":{"type":"thinking","thinking":""}}` + "\n\ndata: {\"type\":\"ping\"}\n\n",
			`data: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}` + "\n\n",
			`data: {"type":"content_block_delta","delta":{"type":"signature_delta","signature":"xyz"}}` + "\n\n",
			`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"yes"}}` + "\n\n",
			`data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}}` + "\n\n",
			`data: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}` + "\n\n",
			`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":12}}` + "\n\n",
			`data: {"type":"message_stop"}` + "\n\n",
		},
		tokens: []int{0, 0, 1, 0, 1, 1, 1, 0, 0}, outcome: event.Outcome{Reason: "tool_use", Prompt: 27, Cached: 20, Generated: 12, AnyLater: true},
	},
	{
		name: "a list of answers, of llama.cpp and SGLang for several prompts", path: "/generate", kind: "application/json", label: "generate",
		chunks: []string{`[{"text":"a","meta_info":{"completion_tokens":3}},{"text":"b","meta_info":{"completion_tokens":4}}]`},
		tokens: []int{0}, outcome: event.Outcome{Reason: "not read: a message is not a JSON object"}, warning: answers.Unread("a message is not a JSON object"),
	},
}

// TestShapes plays every answer one chunk at a time: each token must be stamped while its chunk was in flight, and no
// other chunk may count as tokens.
func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			chunks := s.chunks
			switch {
			case s.file != "" && s.kind == lined:
				chunks = rows(sample(t, s.file))
			case s.file != "":
				chunks = events(sample(t, s.file))
			}
			tokens, r, logged := play(t, s.path, s.request, s.kind, chunks)
			if !slices.Equal(tokens, s.tokens) {
				t.Errorf("tokens of the chunks: %v, want %v", tokens, s.tokens)
			}
			if logged.outcome != s.outcome {
				t.Errorf("outcome %+v, want %+v", logged.outcome, s.outcome)
			}
			d := answers.Of(s.path)
			want := event.Request{Label: s.label, MaxTokens: s.max, Chat: d.Chat, ColdLater: d.Lines, Model: requestedModel(s.request)}
			if logged.request != want {
				t.Errorf("request %+v, want %+v", logged.request, want)
			}
			if r.model() != s.model {
				t.Errorf("model %q, want %q", r.model(), s.model)
			}
			var warned []string
			if s.warning != "" {
				warned = []string{s.warning + " (requests: 1)"}
			}
			if got := r.proxy.Warnings(); !slices.Equal(got, warned) {
				t.Errorf("warnings %v, want %v", got, warned)
			}
		})
	}
}

// requestedModel returns the model that a request names.
func requestedModel(request string) string {
	var body struct{ Model string }
	_ = json.Unmarshal([]byte(request), &body)
	return body.Model
}
