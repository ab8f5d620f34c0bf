package proxy

import (
	"io"
	"net/http"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestImplausibleNumbersAreCounted: numbers of an answer that cannot be are left out and counted as malformed, and those beside them count.
func TestImplausibleNumbersAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		path, answer string
		prompt       int
		malformed    uint64
	}{
		"chat": {
			"/v1/chat/completions", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1e18,"prompt_tokens_details":{"cached_tokens":9999999999}},` +
				`"timings":{"prompt_ms":1e300,"predicted_n":-4},"metrics":{"queue_time_ms":1e999}}`, 5, 4,
		},
		"messages": {
			"/v1/messages", `{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":7,"cache_read_input_tokens":1e12,"output_tokens":1e15}}`, 7, 2,
		},
		"responses": {
			"/v1/responses", `{"object":"response","status":"completed","usage":{"input_tokens":3,"output_tokens":2147483648}}`, 3, 1,
		},
		"ollama": {
			"/api/generate", `{"response":"a","done":true,"prompt_eval_count":6,"eval_count":18446744073709551616,"load_duration":9e18}`, 6, 2,
		},
		"nothing implausible": {
			"/api/generate", `{"response":"a","done":true,"prompt_eval_count":6,"eval_count":-1,"load_duration":"9e18"}`, 6, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.answer)
			}))
			res := r.post(t, c.path, `{}`)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			eventtest.Wait(t, "the end of the request", func() bool { return len(r.requests()) == 1 })
			list := r.OfKind(event.KindEngine)
			malformed := list[len(list)-1].Data.(*event.EngineInfo).Remote.Malformed
			if o := r.requests()[0].outcome; malformed != c.malformed || o.Prompt != c.prompt || o.Cached != 0 || o.Generated > 1 {
				t.Errorf("%d are malformed, want %d; %+v", malformed, c.malformed, o)
			}
		})
	}
}
