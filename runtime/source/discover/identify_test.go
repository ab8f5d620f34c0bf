package discover

import (
	"context"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestMetricsTellTheLoad: the metrics give the number of requests at once, and the rate from the second read on.
func TestMetricsTellTheLoad(t *testing.T) {
	texts := vllmAnswers(t)
	text := sample(t, "vllm_metrics.txt")
	texts["/metrics"] = text
	f := serve(t, 200, texts)
	var a Watch
	ask := func() engine.Load {
		id, err := a.identify(context.Background(), f.URL, false)
		if err != nil {
			t.Fatal(err)
		}
		return id.Load
	}
	first := ask()
	if first.Running.V != 7 || first.Waiting.V != 3 || !first.Running.OK() || first.Decode != event.Absent(event.NotYet) {
		t.Errorf("first load: %+v", first)
	}
	f.set("/metrics", strings.Replace(text, "} 20480.0", "} 20580.0", 1))
	if second := ask(); !second.Decode.OK() || second.Decode.V <= 0 || second.Decode.Origin != event.Derived {
		t.Errorf("second load: %+v", second)
	}
	f.set("/metrics", "# an exporter of something else\n")
	if none := ask(); none.Running.OK() || none.Decode.OK() {
		t.Errorf("load without metrics: %+v", none)
	}
	f.harmless(t)
}

// TestMetricsOfLlamaAreLeftAlone: each read of llama.cpp's metrics resets the rates for other readers.
func TestMetricsOfLlamaAreLeftAlone(t *testing.T) {
	texts := llamaAnswers(t)
	delete(texts, "/slots")
	f := serve(t, 200, texts)
	if _, err := new(Watch).identify(context.Background(), f.URL, false); err != nil {
		t.Fatal(err)
	}
	for _, asked := range f.asked {
		if strings.HasPrefix(asked, "GET /metrics") {
			t.Errorf("it got the request %s", asked)
		}
	}
}
