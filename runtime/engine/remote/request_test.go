package remote

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

const finished = `{"choices":[{"delta":{},"finish_reason":"length"}]}`

// TestChatStamps: messages without text are no tokens, bytes that arrive together share a stamp, and an event in
// several pieces is stamped by its last.
func TestChatStamps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, `{"data":[{"id":"m","owned_by":"someone"}]}`, Options{}, map[string]http.HandlerFunc{
			"POST /v1/chat/completions": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				play(w,
					step{50 * time.Millisecond, ": keepalive 512/1024\n\n"},
					step{50 * time.Millisecond, data(`{"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":10}}`)},
					step{50 * time.Millisecond, data(`{"choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}`)},
					step{ms100, data(`{"choices":[{"delta":{"reasoning_content":"Hm"}}]}`)},
					step{ms100, data(`{"choices":[{"delta":{"reasoning":"m"}}]}`) + data(`{"choices":[{"delta":{"content":"a"}}]}`)},
					step{ms100, `data: {"choices":[{"delta":{"con`},
					step{ms100, `tent":"b"}}]}` + "\r\n"},
					step{ms100, "\r\n"},
					step{ms100, data(`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`)},
					step{ms100, data(finished)},
					step{ms100, data(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":3}}}`) + data("[DONE]")},
				)
			},
		})
		got := s.do(t, engine.Request{Text: "x", Label: "kind", Group: "g", SendText: true})
		if s.tokens() != "250:1 350:1 350:1 650:1 750:1" {
			t.Errorf("tokens came at %s", s.tokens())
		}
		want := engine.Result{Outcome: event.Outcome{Reason: "length", Prompt: 7, Cached: 3, Generated: 6, Later: 5}, State: event.StateFinished, Text: "Hmmabf{}"}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(event.Outcome{}, "Asked")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		requests := s.sink.OfKind(event.KindRequest)
		if q := requests[0].Data.(*event.Request); len(requests) != 2 || q.Label != "kind" || q.Group != "g" || q.Prompt != "x" {
			t.Errorf("%d events of the request, the first with %+v", len(requests), q)
		}
		if s.Uncounted.Load() != 0 {
			t.Error("the server did report its tokens")
		}
		s.closed()
	})
}

// TestTokensOfAChunk: a chunk has as many tokens as ids, or as the server's running count grew, or else one. A total at the
// end is no running count.
func TestTokensOfAChunk(t *testing.T) {
	for name, c := range map[string]struct {
		chunks    []string
		want      string
		total     int
		uncounted int
	}{
		"ids": {[]string{
			`{"choices":[{"text":"a","token_ids":[1]}]}`, `{"choices":[{"text":"bcd","token_ids":[2,3,4]}]}`,
		}, "100:1 200:3", 4, 1},
		"cumulative usage": {[]string{
			`{"choices":[{"text":"a"}],"usage":{"completion_tokens":2}}`, `{"choices":[{"text":"bc"}],"usage":{"completion_tokens":5}}`,
			`{"choices":[],"usage":{"completion_tokens":6}}`,
		}, "100:2 200:3", 6, 0},
		"timings": {[]string{
			`{"choices":[{"text":"a"}],"timings":{"predicted_n":1}}`, `{"choices":[{"text":""}],"timings":{"predicted_n":2}}`,
			`{"choices":[{"text":"é"}],"timings":{"predicted_n":3}}`, `{"choices":[{"text":"!"}],"timings":{"predicted_n":3}}`,
		}, "100:1 300:2", 3, 0},
		"no counts": {[]string{
			`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"bc"}]}`,
		}, "100:1 200:1", 2, 1},
		"usage at the end": {[]string{
			`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"bc"}],"usage":{"completion_tokens":9}}`,
		}, "100:1 200:1", 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
					"POST /v1/completions": func(w http.ResponseWriter, _ *http.Request) {
						for _, chunk := range c.chunks {
							play(w, step{ms100, data("%s", chunk)})
						}
						play(w, step{ms100, data(`{"choices":[{"text":"","finish_reason":"stop"}]}`) + data("[DONE]")})
					},
				})
				got := s.do(t, engine.Request{IDs: []int32{1, 2}})
				if s.tokens() != c.want || got.Generated != c.total || int(s.Uncounted.Load()) != c.uncounted || got.Prompt != 2 {
					t.Errorf("tokens at %s, %d in all of %d prompt tokens, %d uncounted; want %s, %d, %d", s.tokens(), got.Generated, got.Prompt, s.Uncounted.Load(), c.want, c.total, c.uncounted)
				}
				s.closed()
			})
		})
	}
}

// TestServerTimings: durations that the server reports become stages that end with the first token.
func TestServerTimings(t *testing.T) {
	ollamaModels := `{"data":[{"id":"m","owned_by":"library"}]}`
	for name, c := range map[string]struct {
		models, path string
		chunks       []string
		want         map[event.Stage]time.Duration
		outcome      event.Outcome
	}{
		"llama.cpp": {
			llama, "POST /v1/completions",
			[]string{
				data(`{"choices":[{"text":"a"}],"timings":{"cache_n":5,"prompt_n":3,"prompt_ms":40.5,"predicted_n":1,"predicted_ms":0.001}}`),
				data(`{"choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}`),
			},
			map[event.Stage]time.Duration{event.StagePrompt: 40500 * time.Microsecond},
			event.Outcome{Reason: "length", Prompt: 8, Cached: 5, Generated: 1},
		},
		"Ollama": {
			ollamaModels, "POST /api/generate",
			[]string{
				`{"model":"m","response":"","thinking":"Hm","done":false}` + "\n" + `{"model":"m","response":"a","done":false}` + "\n",
				`{"response":"","done":true,"done_reason":"stop","context":[1,2,3],"total_duration":9,"load_duration":20000000,"prompt_eval_count":12,"prompt_eval_duration":30000000,"eval_count":2,"eval_duration":7}` + "\n",
			},
			map[event.Stage]time.Duration{event.StagePrompt: 30 * time.Millisecond}, // it looked for the loaded model
			event.Outcome{Reason: "stop", Prompt: 12, AnyCached: true, Generated: 2},
		},
		"Ollama loads the model": {
			ollamaModels, "POST /api/generate",
			[]string{`{"response":"a","done":true,"done_reason":"stop","load_duration":250000000,"prompt_eval_count":12,"prompt_eval_duration":30000000,"eval_count":1}`},
			map[event.Stage]time.Duration{event.StageLoad: 250 * time.Millisecond, event.StagePrompt: 30 * time.Millisecond},
			event.Outcome{Reason: "stop", Prompt: 12, AnyCached: true, Generated: 1, Cold: true},
		},
		"vLLM": {
			`{"data":[{"id":"m","owned_by":"vllm","max_model_len":99}]}`, "POST /v1/completions",
			[]string{
				data(`{"choices":[{"text":"a","token_ids":[4],"finish_reason":"stop"}]}`),
				data(`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1},"metrics":{"queue_time_ms":3.5,"time_to_first_token_ms":10}}`),
			},
			map[event.Stage]time.Duration{event.StageQueue: 3500 * time.Microsecond, event.StagePrompt: 10 * time.Millisecond},
			event.Outcome{Reason: "stop", Prompt: 4, Generated: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := begin(t, c.models, Options{}, map[string]http.HandlerFunc{
					c.path: func(w http.ResponseWriter, _ *http.Request) {
						for _, chunk := range c.chunks {
							play(w, step{ms100, chunk})
						}
					},
				})
				result := s.do(t, engine.Request{Text: "x"})
				if result.Asked = 0; result.Outcome != c.outcome || result.State != event.StateFinished {
					t.Errorf("%+v, want %+v", result, c.outcome)
				}
				if q := s.sink.OfKind(event.KindRequest)[0].Data.(*event.Request); q.ColdLater != (c.models == ollamaModels) {
					t.Errorf("cold later: %v", q.ColdLater)
				}
				got := map[event.Stage]time.Duration{}
				for _, e := range s.sink.OfKind(event.KindStage) {
					got[e.Stage] = time.Duration(e.Dur)
					if first := s.sink.OfKind(event.KindToken)[0]; e.At != first.At || e.Req != first.Req {
						t.Errorf("%v is stamped %v, the first token %v", e.Stage, e.At, first.At)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("stages (-want +got):\n%s", diff)
				}
				s.closed()
			})
		})
	}
}

func TestOllamaChat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, `{"data":[{"id":"m","owned_by":"library"}]}`, Options{API: OllamaChat}, map[string]http.HandlerFunc{
			"POST /api/chat": func(w http.ResponseWriter, _ *http.Request) {
				play(w, step{ms100, `{"message":{"role":"assistant","content":""},"done":false}` + "\n"},
					step{ms100, `{"message":{"role":"assistant","thinking":"Hm"},"done":false}` + "\n"},
					step{ms100, `{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}` + "\n"},
					step{ms100, `{"message":{"content":"x"},"done":true,"eval_count":4,"prompt_eval_count":2}`})
			},
		})
		got := s.do(t, engine.Request{Text: "x", SendText: true})
		if s.tokens() != "200:1 300:1 400:1" || got.Later != 3 || got.Text != `Hmf{"a":1}x` || got.Reason != reasonDone {
			t.Errorf("tokens at %s, %+v", s.tokens(), got)
		}
		s.closed()
	})
}

// TestBodies: the bodies of requests.
func TestBodies(t *testing.T) {
	full := engine.Request{
		Text: "hi", Group: "adapter", MaxTokens: 5, IgnoreEOS: true,
		Params: engine.Params{Temperature: 0.5, TopK: 40, TopP: 0.9, MinP: 0.05, RepeatPenalty: 1.1, Seed: 7},
	}
	for name, c := range map[string]struct {
		server server
		want   string
	}{
		"other": {
			server{api: OpenAIChat, model: event.Model{Name: "m"}},
			`{"max_tokens":5,"messages":[{"content":"hi","role":"user"}],"model":"m","seed":7,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":0.9}`,
		},
		"llama.cpp": {
			server{api: OpenAI, kind: scrape.Llama, model: event.Model{Name: "m"}},
			`{"cache_prompt":false,"ignore_eos":true,"max_tokens":5,"min_p":0.05,"model":"m","prompt":"hi","repeat_penalty":1.1,"seed":7,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"timings_per_token":true,"top_k":40,"top_p":0.9}`,
		},
		"vLLM": {
			server{api: OpenAI, kind: scrape.VLLM, model: event.Model{Name: "m"}},
			`{"cache_salt":"?","ignore_eos":true,"max_tokens":5,"min_p":0.05,"model":"adapter","prompt":"hi","repetition_penalty":1.1,"return_token_ids":true,"seed":7,"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true},"temperature":0.5,"top_k":40,"top_p":0.9}`,
		},
		"Ollama": {
			server{api: Ollama, kind: scrape.Ollama, model: event.Model{Name: "m"}},
			`{"model":"m","options":{"min_p":0.05,"num_predict":5,"repeat_penalty":1.1,"seed":7,"temperature":0.5,"top_k":40,"top_p":0.9},"prompt":"hi","stream":true}`,
		},
	} {
		body, err := c.server.body(&full, true)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if salt, ok := got["cache_salt"].(string); ok && len(salt) > 20 {
			got["cache_salt"] = "?"
		}
		if written, _ := json.Marshal(got); string(written) != c.want {
			t.Errorf("%s is sent\n%s, want\n%s", name, written, c.want)
		}
	}
}

// TestSent: a request starts when its bytes are written, after connecting.
func TestSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var key, agent string
		s := begin(t, llama, Options{Key: "sk-secret"}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				key, agent = r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding")
				play(w, step{ms100, data(`{"choices":[{"text":"a"}]}`)}, step{ms100, data(`{"choices":[{"text":"","finish_reason":"stop"}]}`) + data("[DONE]")})
			},
		})
		s.transport = newTransport(s.opt.Clock, func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(ms100)
			return s.opt.connect(ctx, network, address)
		})
		asked := s.do(t, engine.Request{Text: "x"}).Asked
		queued := s.sink.OfKind(event.KindRequest)[0].At
		first := s.sink.OfKind(event.KindToken)[0].At - s.sink.OfKind(event.KindRequest)[0].At
		if time.Duration(first) != ms100 {
			t.Errorf("the first token came after %v", time.Duration(first))
		}
		if key != "Bearer sk-secret" || agent != "" {
			t.Errorf("the key came as %q, with Accept-Encoding %q", key, agent)
		}
		if connected := queued - asked; time.Duration(connected) != ms100 {
			t.Errorf("connecting took %v", time.Duration(connected))
		}
		s.closed()
	})
}

// TestQueuedIsReportedAtOnce: the queued event comes before the server answers.
func TestQueuedIsReportedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				play(w, step{time.Hour / 10, data(`{"choices":[{"text":"a","finish_reason":"stop"}]}`)})
			},
		})
		h, err := s.Submit(engine.Request{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := s.sink.OfKind(event.KindRequest); len(got) != 1 || got[0].State != event.StateQueued {
			t.Errorf("events so far: %+v", got)
		}
		h.Result()
		s.closed()
	})
}

// TestEveryEventLacksTheKey: no event holds the key, whatever the server sends.
func TestEveryEventLacksTheKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := begin(t, llama, Options{Key: "sk-secret"}, map[string]http.HandlerFunc{
			"POST /v1/completions": func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "stream me") {
					play(w, step{0, data(`{"error":{"message":"no such key: sk-secret"}}`)})
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: sk-secret"}}`)
			},
		})
		for _, text := range []string{"x", "stream me"} {
			got := s.do(t, engine.Request{Text: text})
			if got.State != event.StateFailed || strings.Contains(got.Err.Error(), "sk-secret") || !strings.Contains(got.Reason, "[key]") {
				t.Errorf("%+v", got)
			}
		}
		s.closed()
		if all := cmp.Diff(nil, s.sink.All()); strings.Contains(all, "sk-secret") {
			t.Errorf("an event holds the key: %s", all)
		}
	})
}

// TestRecordedAnswers: the results of recorded answers. llama.cpp's completion is from a real server, the others are
// made after the servers' sources.
func TestRecordedAnswers(t *testing.T) {
	recorded := recorded(t)
	for name, c := range map[string]struct {
		api    API
		text   string
		counts []int // tokens of each message with text
		want   event.Outcome
	}{
		"llamacpp_completion.sse":           {OpenAI, ", when they were told the", []int{1, 1, 1, 1, 1, 1}, event.Outcome{Reason: "length", Prompt: 6, Generated: 6, Later: 5}},
		"llamacpp_stream_chat_progress.sse": {OpenAIChat, "Okay, soThe answer", []int{1, 1, 1, 1}, event.Outcome{Reason: "length", Prompt: 2560, Cached: 512, Generated: 4, Later: 3}},
		"vllm_stream_chat.sse":              {OpenAIChat, "Okay, soThe answer is", []int{1, 2, 1, 2}, event.Outcome{Reason: "stop", Prompt: 2560, Cached: 512, Generated: 7, Later: 6}},
		"mlx_lm_stream.sse":                 {OpenAIChat, "The", []int{1}, event.Outcome{Reason: reasonDone, Generated: 1}},
		"ollama_generate_stream.ndjson":     {Ollama, "The sky", []int{1, 1}, event.Outcome{Reason: "stop", Prompt: 543, AnyCached: true, Generated: 64, AnyLater: true, Cold: true}},
	} {
		sink := &eventtest.Log{}
		q := newRequest(&Client{sink: sink, server: server{api: c.api}}, 1, engine.Request{Text: "x", SendText: true})
		q.x.Response = answer("")
		got := q.finish(q.read(pieces(c.api, recorded[name], 50)))
		var counts []int
		for _, e := range sink.OfKind(event.KindToken) {
			counts = append(counts, int(e.N))
		}
		if got.Outcome != c.want || got.Text != c.text || !cmp.Equal(counts, c.counts) {
			t.Errorf("%s: %+v, %q in %v; want %+v, %q in %v", name, got.Outcome, got.Text, counts, c.want, c.text, c.counts)
		}
	}
}
