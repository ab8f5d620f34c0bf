package watch

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestJoined: a tap and the poller of the same server are one engine. Its requests are counted once, by the tap; the poller
// adds what only the server knows, and a poller that never reached it changes nothing.
func TestJoined(t *testing.T) {
	now, here := event.Time(20*time.Second), true
	s := store.New(store.Options{Now: func() event.Time { return now }})
	j := joined{here: func() bool { return here }}
	tap, poller := j.tapped(s), j.polled(s)
	engine := func(sink event.Sink, e event.EngineInfo) {
		sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &e})
	}
	engine(tap, event.EngineInfo{Name: "tap 8000", Provider: "unknown", Caps: event.CapTokens, State: event.EngineReady})
	engine(poller, event.EngineInfo{Name: "server", Caps: event.CapAggregates, Remote: event.Remote{Link: event.LinkDisconnected, Reason: "refused"}})
	if e := s.Snapshot().Engine; e.Remote.Link != event.LinkConnected || e.Provider != "unknown" || e.Caps != event.CapTokens {
		t.Fatalf("before the poller reached the server: %+v", e)
	}
	engine(poller, event.EngineInfo{Name: "vLLM", Version: "0.11", Caps: event.CapAggregates, State: event.EngineReady, Remote: event.Remote{Address: "http://127.0.0.1:8000", Link: event.LinkConnected}})
	poller.Emit(event.Event{Kind: event.KindModel, At: now, Layer: -1, Data: &event.Model{Name: "org/model"}})
	tap.Emit(event.Event{Kind: event.KindModel, At: now, Layer: -1, Data: &event.Model{Name: "alias"}})
	tap.Emit(event.Event{Kind: event.KindRequest, At: now, Req: 2, Layer: -1, State: event.StateQueued, Data: &event.Request{}})
	if v := s.Snapshot(); v.Totals().Queued.OK() || v.Requests[0].Status() != store.Waiting {
		t.Errorf("queued %v, %s: nobody has reported a queue", v.Totals().Queued, v.Requests[0].Status())
	}
	at := now - event.Time(3*time.Second)
	tap.Emit(event.Event{Kind: event.KindRequest, At: at, Req: 1, Layer: -1, State: event.StateQueued, Data: &event.Request{Group: "10.0.0.7"}})
	for i := range int32(5) {
		at += event.Time(50 * time.Millisecond)
		tap.Emit(event.Event{Kind: event.KindToken, At: at, Req: 1, ID: -1, Layer: -1, N: 1, Index: i})
	}
	tap.Emit(event.Event{Kind: event.KindRequest, At: at, Req: 1, Layer: -1, State: event.StateFinished, Data: &event.Outcome{Prompt: 7, Generated: 5}})
	one := event.ReportedValue
	poller.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: &event.Aggregates{
		Interval: int64(time.Second), Running: one(2), Waiting: one(3), KVUsage: one(0.5), Finished: one(1), Prompt: one(7), Generated: one(5), Decode: one(99),
		Slots:      []event.Slot{{Request: 1, Generated: 5}},
		Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: 1}, {Name: event.HistogramQueue, Count: 1}},
	}})
	v := s.Snapshot()
	if e := v.Engine; e.Name != "tap 8000" || e.Provider != "vLLM" || e.Version != "0.11" || !e.Caps.Has(event.CapTokens|event.CapAggregates) || v.Model.Name != "org/model" {
		t.Errorf("engine %+v, model %q", e, v.Model.Name)
	}
	tap.Emit(event.Event{Kind: event.KindRequest, At: now, Req: 2, Layer: -1, State: event.StateUnseen, Data: &event.Outcome{AnyEnd: true}})
	v = s.Snapshot()
	sum := v.Totals()
	if sum.Unseen.V != 1 || sum.Finished.V != 1 || sum.Generated.V != 5 || sum.Prompt.V != 7 || sum.Queued.V != 3 || sum.Running.V != 2 || v.KV.Usage.V != 0.5 {
		t.Errorf("totals %+v, KV %v", sum, v.KV.Usage)
	}
	if len(v.Requests) != 2 || v.Latency.Of[store.TTFT][metric.Session].Count != 1 || v.Aggregates.Histogram(event.HistogramTTFT) != nil || v.Aggregates.Histogram(event.HistogramQueue) == nil {
		t.Errorf("%d requests, histograms %+v", len(v.Requests), v.Aggregates.Histograms)
	}
	if r := v.Throughput.Decode; r.V != 20 {
		t.Errorf("decode %v, want what the tap measured", r)
	}
	here = false // another server has the port on this machine
	engine(poller, event.EngineInfo{Name: "other", Remote: event.Remote{Link: event.LinkConnected}})
	if e := s.Snapshot().Engine; e.Provider != "vLLM" {
		t.Errorf("another server joined: %+v", e)
	}
}
