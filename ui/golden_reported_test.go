package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
)

func reading(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// inSums is a server that tells of itself in sum, with histograms of its times.
func inSums() *store.Snapshot {
	const ms = int64(ms)
	s := newScene()
	s.server("vLLM", event.Model{Name: "Qwen/Qwen3-30B-A3B", Context: 32768})
	for i := range 12 {
		s.now += event.Time(time.Second)
		p := &event.Report{
			Interval: int64(time.Second), Running: reading(7), Waiting: reading(3), Decode: event.From(900 + 20*float64(i)), Prefill: event.From(2500),
			KVUsage: reading(0.43), KVUsed: event.From(187_000), KVTotal: reading(437_000), CacheHits: event.From(0.44),
			Finished: event.From(5), Failed: event.From(0), Prompt: event.From(4400), Cached: event.From(1900), Generated: event.From(900 + 20*float64(i)),
			Times: []event.Times{
				{Name: event.TimesTTFT, Count: 5, Sum: 1050 * ms, Bounds: []int64{100 * ms, 250 * ms, 500 * ms}, Counts: []uint64{1, 2, 2, 0}},
				{Name: event.TimesITL, Count: 300, Sum: 2400 * ms, Bounds: []int64{10 * ms, 25 * ms}, Counts: []uint64{290, 9, 1}},
				{Name: event.TimesE2EL},
				{Name: event.TimesQueue, Count: 5, Sum: 160 * ms, Bounds: []int64{300 * ms, 500 * ms}, Counts: []uint64{5, 0, 0}},
				{Name: event.TimesPrefill, Count: 5, Sum: 880 * ms, Bounds: []int64{300 * ms, 500 * ms}, Counts: []uint64{4, 1, 0}},
			},
			More: []event.Number{{Name: "accepted_draft_share", Reading: event.From(0.7)}, {Name: "preemptions", Reading: event.From(2)}},
		}
		s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: p})
	}
	return s.drain()
}

// slotted is a server of which the slots are seen.
func slotted() *store.Snapshot {
	s := newScene()
	s.server("llama.cpp", event.Model{Name: "qwen3-30b-a3b", Quantisation: "Q4_K - Medium", Context: 8192})
	for i := range 8 {
		s.now += event.Time(time.Second / 4)
		s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{
			Interval: int64(time.Second / 4), Running: reading(2), Waiting: reading(1), Decode: event.From(71), Prefill: event.From(410),
			KVUsage: event.From(0.11), KVUsed: event.From(3500), KVTotal: event.From(32768), Generated: event.From(18),
			Slots: []event.Slot{
				{Slot: 0, Request: 4, Prompt: 1181, Processed: 1181, Cached: 512, Generated: 40 + 18*i, Max: 512, Used: 1221 + 18*i, Context: 8192},
				{Slot: 1, Request: 5, Prompt: 2048, Processed: 250 * i, Context: 8192},
				{Slot: 2, Context: 8192},
				{Slot: 3, Context: 8192},
			},
		}})
	}
	return s.drain()
}

// server introduces a server that is watched over HTTP.
func (s *scene) server(name string, m event.Model) {
	s.emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{
		Name: name, Version: "1.2", Caps: event.CapReports, State: event.EngineReady,
		Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	s.emit(event.Event{Kind: event.KindModel, Layer: -1, Data: &m})
}

// bare is a server that tells nothing but its models.
func bare() *store.Snapshot {
	s := newScene()
	s.server("LM Studio", event.Model{Name: "granite"})
	s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{}})
	return s.drain()
}

// probed is a server that tells nothing but its models, and is probed.
func probed() *store.Snapshot {
	s := newScene()
	s.server("LM Studio", event.Model{Name: "granite"})
	s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{}})
	for id := event.RequestID(1); id <= 5; id++ {
		s.now += event.Time(10 * time.Second)
		s.emit(event.Event{Kind: event.KindRequest, Req: id, Layer: -1, State: event.StateQueued, Data: &event.Request{Label: "probe", Probe: true, MaxTokens: 8}})
		if id == 4 {
			s.emit(event.Event{Kind: event.KindRequest, Req: id, Layer: -1, State: event.StateFailed, Data: &event.Outcome{Reason: "the server answered 500"}})
			continue
		}
		s.now += event.Time(180+20*id) * ms
		for i := range int32(8) {
			s.emit(event.Event{Kind: event.KindToken, Req: id, Layer: -1, ID: -1, N: 1, Index: i})
			s.now += 11 * ms
		}
		s.emit(event.Event{Kind: event.KindRequest, Req: id, Layer: -1, State: event.StateFinished, Data: &event.Outcome{Reason: "length", Prompt: 21, Generated: 8}})
	}
	return s.drain()
}

// severalModels is a llama-server with several models, the first of which is being loaded: a part of it is done, and another is on its way.
func severalModels() *store.Snapshot {
	s := newScene()
	s.server("llama.cpp", event.Model{})
	s.emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{
		Name: "llama.cpp", Version: "b10582", Caps: event.CapReports, State: event.EngineLoading,
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
		s.now += event.Time(stage.took)
		s.emit(event.Event{Kind: event.KindStage, Stage: stage.of, Text: stage.name, Dur: int64(stage.took), Layer: -1})
	}
	s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{
		More:    []event.Number{{Name: "load_mmproj_model_share", Reading: reading(0.5)}},
		Sources: []event.Source{{Name: "/models/sse"}, {Name: "/slots", Why: "the model sleeps, and asking would wake it"}},
	}})
	return s.drain()
}

// traced is a receiver of traces that was told of a load, and was sent things that it did not take.
func traced() *store.Snapshot {
	s := newScene()
	s.emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{
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
		s.emit(event.Event{Kind: event.KindStage, Text: stage.name, At: event.Time(stage.to), Dur: int64(stage.to - stage.from), Layer: -1})
	}
	s.emit(event.Event{Kind: event.KindCounters, Layer: -1, Data: &event.Counters{Values: []event.Counter{
		{Name: "exports_refused", Value: 1}, {Name: "exports_taken", Value: 12}, {Name: "spans_late", Value: 3}, {Name: "spans_taken", Value: 480},
	}}})
	return s.drain()
}

// started is an SGLang that tells how long its start took, and has had no request since.
func started() *store.Snapshot {
	s := newScene()
	s.server("SGLang", event.Model{Name: "Qwen/Qwen3-30B-A3B"})
	s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{
		Running: reading(0), Waiting: reading(0), Times: []event.Times{{Name: event.TimesTTFT}},
		More: []event.Number{
			{Name: "startup_cuda_graph_decode_s", Reading: reading(12.5)},
			{Name: "startup_load_weight_s", Reading: reading(31.2)},
			{Name: "startup_scheduler_e2e_s", Reading: reading(71)},
		},
		Sources: []event.Source{{Name: "/metrics"}, {Name: "/dev/shm/sglang_loads_*.shm", Why: "the server's process has none open"}, {Name: "/v1/loads"}},
	}})
	return s.drain()
}

// untimed is an SGLang that was started without --enable-metrics: it tells how long its start took, and counts no times.
func untimed() *store.Snapshot {
	s := newScene()
	s.server("SGLang", event.Model{Name: "Qwen/Qwen3-30B-A3B"})
	s.emit(event.Event{Kind: event.KindReport, Layer: -1, Data: &event.Report{
		Running: reading(2), Waiting: reading(0),
		More:    []event.Number{{Name: "startup_load_weight_s", Reading: reading(31.2)}, {Name: "startup_scheduler_e2e_s", Reading: reading(71)}},
		Sources: []event.Source{{Name: "/metrics", Why: "the server was started without --enable-metrics"}, {Name: "/v1/loads"}},
	}})
	return s.drain()
}

func TestGoldenReported(t *testing.T) {
	for name, s := range map[string]*store.Snapshot{"counted": inSums(), "slots": slotted(), "bare": bare(), "probed": probed(), "loads": severalModels(), "traces": traced(), "started": started(), "untimed": untimed()} {
		for _, size := range [][2]int{{80, 24}, {160, 45}} {
			for _, v := range []view{viewOverview, viewLatency, viewEngines, viewRequests} {
				a := open(s, theme.TrueColour, false, size[0], size[1])
				a.show(v)
				file := fmt.Sprintf("reported_%s_%s_%dx%d.txt", name, strings.ToLower(tabNames[v]), size[0], size[1])
				golden(t, file, strings.TrimSuffix(a.screen(), "\n"))
			}
		}
	}
}

// unreached is a server that has not answered since llmtop began; asked says whether it had the time to.
func unreached(asked bool) *store.Snapshot {
	s := newScene()
	r := event.Remote{Address: "http://gpu1:8000", Link: event.LinkDisconnected, Why: "nothing listens there: connection refused"}
	s.now += event.Time(time.Second)
	if asked {
		r.Since = s.now
	}
	s.emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.Engine{Name: "server", Caps: event.CapReports, Remote: r}})
	return s.drain()
}

// Of a server that was never reached nothing is known: neither since when it is away, nor that a model is loaded, nor what was before.
func TestNeverReached(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 45}} {
		for _, v := range []view{viewOverview, viewRequests, viewRequest} {
			a := open(unreached(true), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			holds(t, a, "NOT REACHED since llmtop began")
			holds(t, a, "nothing is known yet: the server has not")
			a = open(unreached(false), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			if got := a.screen(); strings.Contains(got, "REACHED") || strings.Contains(got, "refused") {
				t.Errorf("before it was asked the screen says\n%s", got)
			}
		}
	}
	a := open(unreached(true), theme.TrueColour, false, 160, 45)
	golden(t, "reported_unreached_overview_160x45.txt", strings.TrimSuffix(a.screen(), "\n"))
	if got := a.screen(); strings.Contains(got, "model to load") || strings.Contains(got, "known before") {
		t.Errorf("it says\n%s", got)
	}
}

// The view of one request says, too, that none is reported alone.
func TestNoSingleRequests(t *testing.T) {
	a := open(inSums(), theme.TrueColour, false, 80, 24)
	a.show(viewRequest)
	holds(t, a, "single requests: not reported by this engine")
	holds(t, a, "the proxy (llmtop proxy) would measure them")
}
