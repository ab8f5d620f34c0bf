package proxy

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestPicks counts the expert picks of answers: 4 prompt tokens and 2 generated ones, the last of which went through no
// layer.
func TestPicks(t *testing.T) {
	read := func(name string) string {
		raw, err := os.ReadFile("../answers/testdata/picks/" + name + "_chat_routed_experts.json")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	one := func(text string) string {
		return "data: " + strings.ReplaceAll(text, "\n", "") + "\n\ndata: [DONE]\n\n"
	}
	for _, c := range []struct {
		name, kind, body string
		used             int
		counted          bool
	}{
		{"vLLM", "application/json", read("vllm"), 0, true},
		{"SGLang", "application/json", read("sglang"), 4, true},
		{"SGLang, streamed", stream, one(read("sglang")), 4, true},
		{"SGLang, of unknown shape", "application/json", read("sglang"), 0, false},
		{"without usage", "application/json", strings.Replace(read("vllm"), "usage", "used", 1), 0, false},
		{"garbage", "application/json", strings.Replace(read("vllm"), "k05VTVBZ", "k05VTVBa", 1), 0, false},
		{"no text", "application/json", strings.Replace(read("sglang"), "\"AAAA", "7,\"x\":\"", 1), 4, false},
	} {
		r := behind(t, answering(200, c.kind, c.body), func(o *Options) { o.ExpertsUsed = c.used })
		for range 2 {
			res := r.post(t, chat, `{}`)
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		eventtest.Wait(t, "two requests", func() bool { return len(r.requests()) == 2 })
		list := r.OfKind(event.KindExperts)
		if (len(list) == 2) != c.counted || r.engine().Caps.Has(event.CapExperts) != c.counted {
			t.Errorf("%s: counted %d times, capabilities %b", c.name, len(list), r.engine().Caps)
		}
		if c.counted && len(list) == 2 {
			e := list[1].Data.(*event.Experts)
			if e.PromptTokens != 8 || e.DecodeTokens != 2 || e.Layers != 3 || e.Used != 4 || e.Decode[28] != 2 || e.Prompt[0] != 2 {
				t.Errorf("%s: %+v", c.name, e)
			}
		}
		for _, q := range r.requests() {
			if q.ended.State != event.StateFinished || q.outcome.Generated != 2 && c.name != "without usage" {
				t.Errorf("%s: %+v", c.name, q.outcome)
			}
		}
	}
}

// TestPicksOnlyGrow answers many requests at once: each count of picks contains those before it.
func TestPicksOnlyGrow(t *testing.T) {
	raw, err := os.ReadFile("../answers/testdata/picks/vllm_chat_routed_experts.json")
	if err != nil {
		t.Fatal(err)
	}
	const requests = 40
	r := behind(t, answering(200, "application/json", string(raw)))
	var clients sync.WaitGroup
	for range requests {
		clients.Go(func() {
			res := r.post(t, chat, `{}`)
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		})
	}
	clients.Wait()
	eventtest.Wait(t, "all requests", func() bool { return len(r.requests()) == requests })
	var last uint64
	for _, e := range r.OfKind(event.KindExperts) {
		if n := e.Data.(*event.Experts).PromptTokens; n <= last {
			t.Errorf("%d prompt tokens after %d", n, last)
		} else {
			last = n
		}
	}
	if last != 4*requests {
		t.Errorf("%d prompt tokens in the end, want %d", last, 4*requests)
	}
}
