package report

import (
	"bytes"
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// answered returns the run of one request whose response came like the recorded one of vLLM
// (runtime/engine/remote/testdata/vllm_stream_chat.sse). Times are ms after the request was enqueued; the connection
// was opened 10 ms before that. The role came at 100, reasoning at 200 and 300, output at 400 and 600, an empty message
// with the reason at 700, counts at 750 and the end marker at 800. The events are encoded and decoded like those of a
// recording.
func answered(t *testing.T) *Report {
	t.Helper()
	at := func(n event.Time) event.Time { return n * 1e6 }
	a := &event.Answer{Began: at(990), Chat: true}
	moments := []event.Time{100, 200, 300, 400, 600, 700, 750, 800}
	for i, kind := range []event.MessageKind{1, 5, 5, 3, 3, 1, 8, 16} {
		a.Messages = append(a.Messages, event.Message{At: at(1000 + moments[i]), Kind: kind})
	}
	events := []event.Event{
		{Kind: event.KindEngine, At: 0, Layer: -1, Data: &event.EngineInfo{Name: "vLLM", State: event.EngineReady}},
		{Kind: event.KindRequest, At: at(1000), Req: 1, Layer: -1, State: event.StateQueued, Data: &event.Request{}},
	}
	for i, n := range []int32{1, 2, 1, 3} {
		events = append(events, event.Event{Kind: event.KindToken, At: a.Messages[i+1].At, Req: 1, Layer: -1, ID: -1, N: n, Index: int32(i)})
	}
	events = append(events, event.Event{
		Kind: event.KindRequest, At: at(1810), Req: 1, Layer: -1, State: event.StateFinished,
		Data: &event.Outcome{Reason: "stop", Prompt: 2560, Cached: 512, Generated: 7, Answer: a},
	})
	r := newRun()
	codec := &wire.Codec{}
	for i := range events {
		line, err := codec.Append(nil, &events[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Decode(line, func(e event.Event) { r.emit(int64(e.At-r.now), e) }); err != nil {
			t.Fatal(err)
		}
	}
	return r.build(Meta{})
}

// TestCompatOfARecording compares each rule of each tool with values computed by hand, from a recording and from
// the JSON document made of it.
func TestCompatOfARecording(t *testing.T) {
	rules := map[string]map[string]float64{
		"vllm": { // TTFT to the role, gaps to the message with the reason, latency to the counts
			"Mean TTFT (ms)": 110, "Mean ITL (ms)": 120, "Median ITL (ms)": 100, "P99 ITL (ms)": 196, "Mean E2EL (ms)": 760, "Mean TPOT (ms)": 650.0 / 6,
			"Total input tokens": 2560, "Total generated tokens": 7, "Peak output token throughput (tok/s)": 6,
		},
		"sglang": { // only text, latency to the end marker
			"Mean TTFT (ms)": 210, "Mean ITL (ms)": 400.0 / 3, "Max ITL (ms)": 200, "Mean E2E Latency (ms)": 810, "Mean TPOT (ms)": 100,
		},
		"aiperf": { // only text, latency to the last text, reasoning separate
			"Time to First Token (ms) avg": 210, "Time to Second Token (ms) avg": 100, "Time to First Output Token (ms) avg": 410, "Request Latency (ms) avg": 610,
			"Inter Token Latency (ms) avg": 400.0 / 6, "Output Token Throughput Per User (tokens/sec/user) avg": 15,
			"Prefill Throughput Per User (tokens/sec/user) avg": 2560 / 0.21, "Output Token Throughput (tokens/sec)": 7 / 0.61,
		},
	}
	recorded := answered(t)
	read, err := Read(bytes.NewReader(written(t, recorded)))
	if err != nil {
		t.Fatal(err)
	}
	for source, r := range map[string]*Report{"recording": recorded, "document": read} {
		for name, want := range rules {
			tool, _ := compat.ByName(name)
			r.AddCompat(tool)
			if r.Compat.Tool != tool.Full || len(r.Compat.Points) != 1 {
				t.Fatalf("%+v", r.Compat)
			}
			got := map[string]float64{}
			for _, v := range r.Compat.Points[0].Values {
				got[v.Name] = v.Value.V
			}
			for rule, v := range want {
				if math.Abs(got[rule]-v) > 1e-6*v {
					t.Errorf("%s of the %s: %s is %v, want %v", name, source, rule, got[rule], v)
				}
			}
			if err := schema(t).Validate(decoded(t, r)); err != nil {
				t.Error(err)
			}
		}
	}
}
