package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
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

// TestOnlyFinishedPromptsAreCompared checks that a prompt is not compared with one that the server refused, and may never
// have processed.
func TestOnlyFinishedPromptsAreCompared(t *testing.T) {
	status := http.StatusServiceUnavailable
	r := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering(status, "application/json", `{"choices":[{"text":"yes","finish_reason":"stop"}]}`)(w, r)
	}))
	send := func() event.RequestID {
		_, _, logged := r.one(t, "/v1/completions", `{"model":"a","prompt":"Once upon a time there was a sea."}`)
		return logged.outcome.Reuse.With
	}
	send()
	status = http.StatusOK
	if with := send(); with != 0 {
		t.Errorf("compared with #%d, which failed", with)
	}
	if with := send(); with != 2 {
		t.Errorf("compared with #%d, want #2", with)
	}
}

// TestHeldPrompts checks that no more text waits to be compared than the bounds allow, and that it is released.
func TestHeldPrompts(t *testing.T) {
	p := &Proxy{prompts: prompts.NewHistory()}
	var all []*exchange
	for range maxHeld/maxCompared + 3 {
		x := &exchange{proxy: p}
		x.hold(make([]byte, maxCompared-1))
		x.hold(make([]byte, 1))
		all = append(all, x)
	}
	if held := p.held.Load(); held != maxHeld {
		t.Errorf("%d bytes are held", held)
	}
	all[0].hold(make([]byte, 1)) // too long
	all[0].hold(make([]byte, 1))
	for _, x := range all {
		x.compare()
		if x.text != nil {
			t.Error("the text is kept")
		}
	}
	p.observers.Wait()
	if held := p.held.Load(); held != 0 {
		t.Errorf("%d bytes are still held", held)
	}
}
