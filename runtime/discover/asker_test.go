package discover

import (
	"context"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestMetricsTellTheLoad: how much there is to do at once, and how fast it goes from the second look on.
func TestMetricsTellTheLoad(t *testing.T) {
	say := vllmAnswers(t)
	text := sample(t, "vllm_metrics.txt")
	say["/metrics"] = text
	f := serve(t, 200, say)
	var a asker
	ask := func() Load {
		id, err := a.identify(context.Background(), f.URL)
		if err != nil {
			t.Fatal(err)
		}
		return id.Load
	}
	first := ask()
	if first.Running.V != 7 || first.Waiting.V != 3 || !first.Running.OK() || first.Decode != event.Absent(event.NotYet) {
		t.Errorf("at first the load is %+v", first)
	}
	f.set("/metrics", strings.Replace(text, "} 20480.0", "} 20580.0", 1))
	if second := ask(); !second.Decode.OK() || second.Decode.V <= 0 || second.Decode.Origin != event.Derived {
		t.Errorf("then it is %+v", second)
	}
	f.set("/metrics", "# an exporter of something else\n")
	if none := ask(); none.Running.OK() || none.Decode.OK() {
		t.Errorf("of no metrics it is %+v", none)
	}
	f.harmless(t)
}

// TestMetricsOfLlamaAreLeftAlone: each reader would take the rates of the others away.
func TestMetricsOfLlamaAreLeftAlone(t *testing.T) {
	say := llamaAnswers(t)
	delete(say, "/slots")
	f := serve(t, 200, say)
	if _, err := Fingerprint(context.Background(), f.URL); err != nil {
		t.Fatal(err)
	}
	for _, asked := range f.asked {
		if strings.HasPrefix(asked, "GET /metrics") {
			t.Errorf("it was asked to %s", asked)
		}
	}
}
