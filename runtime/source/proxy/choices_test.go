package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestChoicesAreToldApart checks that the tokens of each answer are counted for it, with the servers' running counts of
// that answer, and that the total covers all.
func TestChoicesAreToldApart(t *testing.T) {
	for name, c := range map[string]struct{ path, first, second, end string }{
		"vLLM": {
			chat, `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":%d}}`, `{"choices":[{"index":1,"delta":{"content":"b"}}],"usage":{"completion_tokens":%d}}`,
			`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`,
		},
		"llama.cpp": {
			"/completion", `{"index":0,"content":"a","timings":{"predicted_n":%d}}`, `{"index":1,"content":"b","timings":{"predicted_n":%d}}`,
			`{"index":1,"content":"","stop_type":"limit","timings":{"prompt_n":5,"predicted_n":3}}`,
		},
	} {
		var body string
		for n := range 3 {
			body += "data: " + fmt.Sprintf(c.first, n+1) + "\n\ndata: " + fmt.Sprintf(c.second, n+1) + "\n\n"
		}
		r := behind(t, answering(200, stream, body+"data: "+c.end+"\n\ndata: [DONE]\n\n"))
		_, _, logged := r.one(t, c.path, `{"n":2}`)
		tokens := map[uint16]int{}
		for _, e := range logged.tokens {
			if int(e.Index) != tokens[e.Choice] {
				t.Errorf("%s: after %d tokens %+v", name, tokens[e.Choice], e)
			}
			tokens[e.Choice] += int(e.N)
		}
		if tokens[0] != 3 || tokens[1] != 3 || logged.outcome.Generated != 6 || logged.outcome.Prompt != 5 {
			t.Errorf("%s: tokens by choice %v, outcome %+v", name, tokens, logged.outcome)
		}
	}
}

// TestOllamaLoadIsCold checks that the request that loads a model is cold, and one that finds it loaded is not. The
// number of computed tokens is unknown, because Ollama's count includes cached ones.
func TestOllamaLoadIsCold(t *testing.T) {
	load := 300 * time.Millisecond
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", lined)
		time.Sleep(load)
		_, _ = fmt.Fprintf(w, `{"response":"a"}`+"\n"+`{"done":true,"eval_count":1,"load_duration":%d,"prompt_eval_count":122,"prompt_eval_duration":900}`+"\n", load)
	}))
	r.one(t, "/api/generate", `{"model":"small"}`)
	load = time.Millisecond
	r.one(t, "/api/generate", `{"model":"small"}`)
	first, second := r.requests()[0], r.requests()[1]
	if !first.outcome.Cold || first.stages[0].Stage != event.StageLoad || second.outcome.Cold || !second.request.ColdLater {
		t.Errorf("first %+v, %+v; second %+v", first.outcome, first.stages, second.outcome)
	}
	for _, logged := range []*loggedRequest{first, second} {
		if prompt := logged.stages[len(logged.stages)-1]; prompt.Stage != event.StagePrompt || prompt.N != 0 || !logged.outcome.AnyCached {
			t.Errorf("%+v, %+v", prompt, logged.outcome)
		}
	}
	if e := r.engine(); e.Provider != "Ollama" {
		t.Errorf("provider %q", e.Provider)
	}
}

// TestProvider checks that an answer shows which program runs the model.
func TestProvider(t *testing.T) {
	for name, c := range map[string]struct{ header, body string }{
		"llama.cpp": {"llama.cpp", `{"choices":[]}`},
		"vLLM":      {"uvicorn", `{"choices":[{"text":"a","finish_reason":"stop","stop_reason":null}]}`},
		"SGLang":    {"uvicorn", `{"choices":[{"text":"a","finish_reason":"stop","matched_stop":2}]}`},
		"Ollama":    {"", `{"system_fingerprint":"fp_ollama","choices":[{"text":"a","finish_reason":"stop"}]}`},
		"unknown":   {"", `{"choices":[{"text":"a","finish_reason":"stop"}]}`},
	} {
		r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Server", c.header)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, c.body)
		}))
		r.one(t, "/v1/completions", `{}`)
		if e := r.engine(); e.Provider != name {
			t.Errorf("provider %q, want %q", e.Provider, name)
		}
	}
}

// TestRealChoices checks with a real llama-server that the tokens of each answer are counted for it, and that a request
// whose client disconnects is cancelled, without an invented number of prompt tokens.
func TestRealChoices(t *testing.T) {
	const limit = 40
	r := &rig{memory: new(memory), clock: engine.NewClock()}
	r.front(t, peer.LlamaServer(t, "", "--parallel", "2", "--ctx-size", "2048", "--threads", "1").URL)
	body := fmt.Sprintf(`{"prompt":"Call me Ishmael.","max_tokens":%d,"ignore_eos":true,"stream":true,"n":2}`, limit)
	_, _, logged := r.one(t, "/v1/completions", body)
	tokens := map[uint16]int{}
	for _, e := range logged.tokens {
		tokens[e.Choice] += int(e.N)
	}
	if n := logged.outcome.Generated; tokens[0] != limit || tokens[1] != limit || n != 2*limit || logged.outcome.Prompt == 0 {
		t.Errorf("tokens by choice %v, outcome %+v", tokens, logged.outcome)
	}
	res := r.post(t, "/v1/completions", `{"prompt":"Call me Ishmael.","max_tokens":900,"ignore_eos":true,"stream":true}`)
	if _, err := io.ReadFull(res.Body, make([]byte, 100)); err != nil {
		t.Error(err)
	}
	_ = res.Body.Close()
	eventtest.Wait(t, "the request ends", func() bool { return len(r.requests()) == 2 })
	if cut := r.requests()[1]; cut.ended.State != event.StateCancelled || cut.outcome.Prompt != 0 { // 0: not reported
		t.Errorf("%v, outcome %+v", cut.ended.State, cut.outcome)
	}
}
