package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestCacheMiss sends a conversation whose instructions hold the time: the proxy names the place, and what a cache could
// have kept of the prompt.
func TestCacheMiss(t *testing.T) {
	r := behind(t, answering(http.StatusOK, stream, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"timings":{"cache_n":40,"prompt_n":360,"prompt_ms":36}}`+"\n\n"))
	send := func(model, now string) *loggedRequest {
		body, err := json.Marshal(map[string]any{"model": model, "stream": true, "messages": []map[string]string{
			{"role": "system", "content": strings.Repeat("Be careful. ", 10) + "It is " + now + ". " + strings.Repeat("Never guess. ", 20)},
			{"role": "user", "content": strings.Repeat("Why is the sea salt? ", 40)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, logged := r.one(t, chat, string(body))
		return logged
	}
	if first := send("a", "07:30:12"); first.outcome.Reuse != (event.Reuse{}) {
		t.Errorf("the first prompt: %+v", first.outcome.Reuse)
	}
	o := send("a", "07:30:14").outcome
	if w := o.Reuse; w.Kind != event.BreakTimestamp || w.Place != "messages[0].content" || w.At != 126 || w.With == 0 {
		t.Errorf("%+v", w)
	}
	if w := o.Reuse; w.Common < 120 || w.Same < 1000 || w.Common+w.Same > w.Bytes {
		t.Errorf("%+v", w)
	}
	if other := send("b", "07:30:14").outcome.Reuse; other != (event.Reuse{}) {
		t.Errorf("another model: %+v", other)
	}
	for i, body := range []string{`{}`, `{"messages":5}`, `[`, fmt.Sprintf(`{"prompt":%q}`, strings.Repeat("x", maxCompared))} {
		if _, _, logged := r.one(t, chat, body); logged.outcome.Reuse != (event.Reuse{}) {
			t.Errorf("body %d: %+v", i, logged.outcome.Reuse)
		}
	}
}
