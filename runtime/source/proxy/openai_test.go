package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// openAIServer answers the requests of testdata/openai_client.mjs.
func openAIServer(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	body := string(raw)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	sendEvents := func(messages ...string) {
		h.Set("Content-Type", stream)
		for _, m := range messages {
			fmt.Fprintf(w, "data: %s\n\n", m)
			flush(w)
		}
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer sk-secret-0815":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1/models":
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	case r.URL.Path == "/v1/responses":
		sendEvents(`{"type":"response.created","response":{"model":"m","status":"in_progress"}}`, `{"type":"response.output_text.delta","delta":"yes"}`,
			`{"type":"response.completed","response":{"model":"m","status":"completed","usage":{"input_tokens":4,"output_tokens":1}}}`)
	case strings.Contains(body, `"busy"`):
		h.Set("X-Request-Id", "req-7")
		h.Set("Retry-After-Ms", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit_exceeded"}}`)
	case strings.Contains(body, `"endless"`):
		for r.Context().Err() == nil {
			sendEvents(`{"choices":[{"index":0,"delta":{"content":"on"}}]}`)
		}
	case strings.Contains(body, `"stream":true`):
		sendEvents(`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"model":"m","choices":[{"index":0,"delta":{"content":"one"}}]}`,
			`{"model":"m","choices":[{"index":0,"delta":{"content":" two"}}]}`, `{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, `[DONE]`)
	default:
		_, _ = io.WriteString(w, `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
	}
}

// TestOpenAIClient runs OpenAI's real client directly and through the proxy: it must see the same, and each request
// must be reported correctly.
func TestOpenAIClient(t *testing.T) {
	folder := os.Getenv("LLMTOP_OPENAI_CLIENT")
	if folder == "" {
		t.Skip(`the openai client is absent: eval "$(scripts/openai.sh)" installs it`)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node.js is absent, in which the openai client runs")
	}
	r := behind(t, http.HandlerFunc(openAIServer))
	run := func(at string) string {
		out, err := exec.Command(node, filepath.Join("testdata", "openai_client.mjs"), folder, at+"/v1").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	direct, through := run(r.server.URL), run(r.proxy.Address())
	if direct != through || !strings.Contains(direct, `" two"`) {
		t.Errorf("through the proxy the client sees\n%s, directly\n%s", through, direct)
	}
	want := []struct {
		label  string
		state  event.State
		reason string
		tokens int
	}{
		{"chat", event.StateFinished, "stop", 2},
		{"chat", event.StateFinished, "stop", 0},
		{"responses", event.StateFinished, "stop", 1},
		{"chat", event.StateCancelled, "cancelled", -1},
		{"chat", event.StateFailed, "HTTP 429 Too Many Requests (rate_limit_exceeded)", 0},
		{"chat", event.StateFailed, "HTTP 429 Too Many Requests (rate_limit_exceeded)", 0}, // the client retries once
	}
	eventtest.Wait(t, "all end", func() bool { return len(r.requests()) == len(want) })
	for i, logged := range r.requests() {
		w := want[i]
		if logged.request.Label != w.label || logged.ended.State != w.state || logged.outcome.Reason != w.reason || w.tokens >= 0 && logged.generated() != w.tokens || w.tokens < 0 && logged.generated() == 0 {
			t.Errorf("request %d: %s, %v, %q, %d tokens; want %+v", i, logged.request.Label, logged.ended.State, logged.outcome.Reason, logged.generated(), w)
		}
	}
}
