package exposition

import (
	"maps"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

const operationLabel, modelLabel = "gen_ai_operation_name", "gen_ai_request_model"

// TestRequestsNameOperationAndModel checks the attributes of requests through a proxy: chats differ from completions,
// the provider is the server, and each request counts for the model that it names.
func TestRequestsNameOperationAndModel(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "http://127.0.0.1:8080")
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "proxy http://a → http://b", Provider: "Ollama", Caps: caps}})
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "small, large"}})
	p.request(1, event.Request{Chat: true, Model: "small"}, 3)
	p.request(2, event.Request{Model: "large"}, 3)
	p.request(3, event.Request{Chat: true, Model: "large"}, 4)
	all := samples(t, x)
	want := map[string]float64{"chat Ollama small": 1, "text_completion Ollama large": 1, "chat Ollama large": 1}
	if got := find(all, "gen_ai_server_request_duration_seconds_count", operationLabel, "gen_ai_provider_name", modelLabel); !maps.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	for name, want := range map[string]map[string]float64{
		"duration":              want,
		"time_to_first_chunk":   want,
		"time_per_output_chunk": {"chat Ollama small": 2, "text_completion Ollama large": 2, "chat Ollama large": 3},
	} {
		if got := find(all, "gen_ai_client_operation_"+name+"_seconds_count", operationLabel, "gen_ai_provider_name", modelLabel); !maps.Equal(got, want) {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	if got := find(all, "llmtop_inter_token_latency_seconds_count", modelLabel); !maps.Equal(got, map[string]float64{"small": 2, "large": 5}) {
		t.Errorf("gaps by model: %v", got)
	}
}

// TestWatchedServersHaveGenAIMetrics checks that the histograms of a server have the names of OpenTelemetry's
// conventions too, with its model, until it reports single requests.
func TestWatchedServersHaveGenAIMetrics(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "http://gpu1:8000")
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady}})
	p.emit(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: "qwen"}})
	p.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{
		Interval: sec, Cancelled: event.DerivedValue(3),
		Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 2, Sum: sec, Bounds: []int64{sec}, Counts: []uint64{2, 0}}},
	}})
	const ttft = "gen_ai_server_time_to_first_token_seconds_count"
	all := samples(t, x)
	if got := find(all, ttft, modelLabel); !maps.Equal(got, map[string]float64{"qwen": 2}) {
		t.Errorf("TTFT by model: %v", got)
	}
	if got := find(all, ttft, operationLabel); !maps.Equal(got, map[string]float64{unknown: 2}) {
		t.Errorf("TTFT by operation: %v", got)
	}
	if got := find(all, "llmtop_model_info", "model"); !maps.Equal(got, map[string]float64{"qwen": 1}) {
		t.Errorf("models: %v", got)
	}
	if got := find(all, "llmtop_requests_total", "outcome"); got["cancelled"] != 3 {
		t.Errorf("requests: %v", got)
	}
	p.request(1, event.Request{Chat: true}, 3)
	all = samples(t, x)
	for _, name := range []string{"duration", "time_to_first_chunk", "time_per_output_chunk"} {
		if got := find(all, "gen_ai_client_operation_"+name+"_seconds_count", modelLabel); len(got) != 0 {
			t.Errorf("%s without a proxy: %v", name, got)
		}
	}
	if got := find(all, ttft, operationLabel); !maps.Equal(got, map[string]float64{"chat": 1}) {
		t.Errorf("TTFT by operation, with a request: %v", got)
	}
}

// TestChoicesHaveTheirOwnGaps checks that the gap of a token is that to the previous token of its choice.
func TestChoicesHaveTheirOwnGaps(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "server")
	p.introduce("vLLM", "m")
	p.state(0, 1, event.StateQueued, &event.Request{})
	for i := range 20 {
		p.emit(30*ms, event.Event{Kind: event.KindToken, Req: 1, N: 1, Choice: uint16(i % 2)})
	}
	p.state(ms, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 20})
	all := samples(t, x)
	for name, want := range map[string]float64{
		"llmtop_inter_token_latency_seconds_count": 18, "llmtop_inter_token_latency_seconds_sum": 18 * 0.06,
		"gen_ai_server_time_per_output_token_seconds_sum": 0.06,
	} {
		if got := find(all, name, "engine")["server"]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if r := p.store.Snapshot().Requests[0]; r.Choices != 2 || r.ITL.Count != 18 || r.ITL.Min != 60*ms || r.DecodeRate.V < 31 || r.DecodeRate.V > 32 {
		t.Errorf("%d choices, gaps %+v, %v tokens/s", r.Choices, r.ITL, r.DecodeRate)
	}
}
