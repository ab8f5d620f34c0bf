package viewtest

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Reading returns a value that the engine reports.
func Reading(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// AggregateOnly returns a server that reports aggregate metrics with latency histograms.
func AggregateOnly() *store.Snapshot {
	const ms = int64(Millisecond)
	s := NewScene()
	s.Server("vLLM", event.Model{Name: "Qwen/Qwen3-30B-A3B", Context: 32768})
	for i := range 12 {
		s.Now += event.Time(time.Second)
		p := &event.Aggregates{
			Interval: int64(time.Second), Running: Reading(7), Waiting: Reading(3), Decode: event.DerivedValue(900 + 20*float64(i)), Prefill: event.DerivedValue(2500),
			KVUsage: Reading(0.43), KVUsed: event.DerivedValue(187_000), KVTotal: Reading(437_000), CacheHits: event.DerivedValue(0.44),
			Finished: event.DerivedValue(5), Failed: event.DerivedValue(0), Prompt: event.DerivedValue(4400), Cached: event.DerivedValue(1900), Generated: event.DerivedValue(900 + 20*float64(i)),
			Histograms: []event.Histogram{
				{Name: event.HistogramTTFT, Count: 5, Sum: 1050 * ms, Bounds: []int64{100 * ms, 250 * ms, 500 * ms}, Counts: []uint64{1, 2, 2, 0}},
				{Name: event.HistogramITL, Count: 300, Sum: 2400 * ms, Bounds: []int64{10 * ms, 25 * ms}, Counts: []uint64{290, 9, 1}},
				{Name: event.HistogramE2EL},
				{Name: event.HistogramQueue, Count: 5, Sum: 160 * ms, Bounds: []int64{300 * ms, 500 * ms}, Counts: []uint64{5, 0, 0}},
				{Name: event.HistogramPrefill, Count: 5, Sum: 880 * ms, Bounds: []int64{300 * ms, 500 * ms}, Counts: []uint64{4, 1, 0}},
			},
			More: []event.NamedReading{{Name: event.RatioAccepted, Reading: event.DerivedValue(0.7)}, {Name: "preemptions", Reading: event.DerivedValue(2)}},
		}
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: p})
	}
	return s.Snapshot()
}

// Slotted returns a server that reports its slots.
func Slotted() *store.Snapshot {
	s := NewScene()
	s.Server("llama.cpp", event.Model{Name: "qwen3-30b-a3b", Quantisation: "Q4_K - Medium", Context: 8192})
	for i := range 8 {
		s.Now += event.Time(time.Second / 4)
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{
			Interval: int64(time.Second / 4), Running: Reading(2), Waiting: Reading(1), Decode: event.DerivedValue(71), Prefill: event.DerivedValue(410),
			KVUsage: event.DerivedValue(0.11), KVUsed: event.DerivedValue(3500), KVTotal: event.DerivedValue(32768), Generated: event.DerivedValue(18),
			Slots: []event.Slot{
				{Slot: 0, Request: 4, Prompt: 1181, Processed: 1181, Cached: 512, Generated: 40 + 18*i, Max: 512, Used: 1221 + 18*i, Context: 8192},
				{Slot: 1, Request: 5, Prompt: 2048, Processed: 250 * i, Context: 8192},
				{Slot: 2, Context: 8192},
				{Slot: 3, Context: 8192},
			},
		}})
	}
	return s.Snapshot()
}

// Ollama returns an Ollama with a number of models in memory. Each runs a request, if busy.
func Ollama(models int, busy bool) *store.Snapshot {
	s := NewScene()
	s.Server("Ollama", event.Model{})
	p := event.Aggregates{
		Interval: int64(time.Second), Running: Reading(0), Decode: event.DerivedValue(0), Prefill: event.DerivedValue(0),
		Generated: event.DerivedValue(0), AtLeast: true,
		Endpoints: []event.Endpoint{{Name: "/api/ps"}, {Name: "/slots of its llama-servers"}},
	}
	for i, m := range []event.LoadedModel{
		{Name: "qwen3:30b-a3b-instruct-2507-q4_K_M", Bytes: 19_818_312_704, GPU: 10_305_522_606, Context: 8192, Until: event.Time(4*time.Minute + 58*time.Second)},
		{Name: "nomic-embed-text:latest", Bytes: 848_677_888, Context: 2048, Stays: true},
		{Name: "llama3.2:1b", Bytes: 1_867_000_000, GPU: 1_867_000_000, Context: 4096},
	}[:models] {
		p.Models = append(p.Models, m)
		slot := event.Slot{Slot: i, Model: m.Name, Context: m.Context}
		if busy {
			slot.Request, slot.Prompt, slot.Processed = event.RequestID(i+1), 300+100*i, 300+100*i
			p.Running.V++
		}
		p.Slots = append(p.Slots, slot)
	}
	if models == 0 {
		s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
			Name: "Ollama", Version: "0.33.0", Caps: event.CapAggregates, State: event.EnginePaused, Reason: "no model in memory",
			Remote: event.Remote{Address: "http://127.0.0.1:11434", Link: event.LinkConnected},
		}})
	}
	for range 4 {
		s.Now += event.Time(time.Second)
		next := p
		next.Slots = slices.Clone(p.Slots)
		for i := range next.Slots {
			if busy {
				next.Slots[i].Generated += 20 * (i + 1)
				next.Slots[i].Used = next.Slots[i].Prompt + next.Slots[i].Generated
			}
		}
		p.Slots = next.Slots
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &next})
	}
	return s.Snapshot()
}

// Server announces a server that is polled over HTTP.
func (s *Scene) Server(name string, m event.Model) {
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
		Name: name, Version: "1.2", Caps: event.CapAggregates, State: event.EngineReady,
		Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	s.Emit(event.Event{Kind: event.KindModel, Layer: -1, Data: &m})
}

// Bare returns a server that reports only its models.
func Bare() *store.Snapshot {
	s := NewScene()
	s.Server("LM Studio", event.Model{Name: "granite"})
	s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{}})
	return s.Snapshot()
}

// SeveralModels returns a llama-server with several models. The first one is loading: some of its stages are complete,
// one is in progress.
func SeveralModels() *store.Snapshot {
	s := NewScene()
	s.Server("llama.cpp", event.Model{})
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
		Name: "llama.cpp", Version: "b10582", Caps: event.CapAggregates, State: event.EngineLoading,
		Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	for _, stage := range []struct {
		of   event.Stage
		name string
		took time.Duration
	}{
		{event.StageLoadOpen, "start of unsloth/Qwen3-VL-30B-A3B-GGUF:Q4_K_M", 180 * time.Millisecond},
		{event.StageLoadPart, "text_model", 9400 * time.Millisecond},
		{event.StageLoadPart, "set-up", 700 * time.Millisecond},
		{event.StageLoadPart, "mmproj_model", 1200 * time.Millisecond},
	} {
		s.Now += event.Time(stage.took)
		s.Emit(event.Event{Kind: event.KindStage, Stage: stage.of, Text: stage.name, Dur: int64(stage.took), Layer: -1})
	}
	s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{
		More:      []event.NamedReading{{Name: "load_mmproj_model_share", Reading: Reading(0.5)}},
		Endpoints: []event.Endpoint{{Name: "/models/sse"}, {Name: "/slots", Reason: "the model is asleep; polling would wake it"}},
	}})
	return s.Snapshot()
}

// Traced returns a receiver of traces that got the stages of a load, and spans that it refused.
func Traced() *store.Snapshot {
	s := NewScene()
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
		Name: "traces", Caps: event.CapStages | event.CapQueue | event.CapCounters, State: event.EngineLoading,
		Remote: event.Remote{Address: "http://127.0.0.1:4318/v1/traces", Link: event.LinkConnected},
	}})
	for _, stage := range []struct {
		name     string
		from, to time.Duration
	}{
		{"EngineCoreProc init", 0, 94 * time.Second},
		{"Dynamo bytecode transform", 33 * time.Second, 42 * time.Second},
		{"Inductor compilation", 42 * time.Second, 61 * time.Second},
	} {
		s.Emit(event.Event{Kind: event.KindStage, Text: stage.name, At: event.Time(stage.to), Dur: int64(stage.to - stage.from), Layer: -1})
	}
	s.Emit(event.Event{Kind: event.KindCounters, Layer: -1, Data: &event.Counters{Values: []event.Counter{
		{Name: "exports_refused", Value: 1}, {Name: "exports_taken", Value: 12}, {Name: "spans_late", Value: 3}, {Name: "spans_taken", Value: 480},
	}}})
	return s.Snapshot()
}

// Started returns an SGLang server that reports its startup times and has had no request since.
func Started() *store.Snapshot {
	s := NewScene()
	s.Server("SGLang", event.Model{Name: "Qwen/Qwen3-30B-A3B"})
	s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{
		Running: Reading(0), Waiting: Reading(0), Histograms: []event.Histogram{{Name: event.HistogramTTFT}},
		More: []event.NamedReading{
			{Name: "startup_cuda_graph_decode_s", Reading: Reading(12.5)},
			{Name: "startup_load_weight_s", Reading: Reading(31.2)},
			{Name: "startup_scheduler_e2e_s", Reading: Reading(71)},
		},
		Endpoints: []event.Endpoint{{Name: "/metrics"}, {Name: "/server_info", Reason: "HTTP 500"}, {Name: "/v1/loads"}},
	}})
	return s.Snapshot()
}

// Untimed returns an SGLang server started without --enable-metrics: it reports its startup times but no latencies.
func Untimed() *store.Snapshot {
	s := NewScene()
	s.Server("SGLang", event.Model{Name: "Qwen/Qwen3-30B-A3B"})
	s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{
		Running: Reading(2), Waiting: Reading(0),
		More:      []event.NamedReading{{Name: "startup_load_weight_s", Reading: Reading(31.2)}, {Name: "startup_scheduler_e2e_s", Reading: Reading(71)}},
		Endpoints: []event.Endpoint{{Name: "/metrics", Reason: "the server was started without --enable-metrics"}, {Name: "/v1/loads"}},
	}})
	return s.Snapshot()
}

// Unreached returns a server that has not answered since llmtop started; polled: the first poll has failed already.
func Unreached(polled bool) *store.Snapshot {
	s := NewScene()
	r := event.Remote{Address: "http://gpu1:8000", Link: event.LinkDisconnected, Reason: "connection refused"}
	s.Now += event.Time(time.Second)
	if polled {
		r.Since = s.Now
	}
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "server", Caps: event.CapAggregates, Remote: r}})
	return s.Snapshot()
}
