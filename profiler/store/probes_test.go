package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// probed returns the snapshot of an engine with the given capabilities after a successful and a failed probe.
func probed(caps event.Caps) *Snapshot {
	now := event.Time(100 * time.Second)
	s := New(Options{Now: func() event.Time { return now }})
	ms := event.Time(time.Millisecond)
	at := now - event.Time(5*time.Second)
	s.Emit(event.Event{Kind: event.KindEngine, At: at, Data: &event.EngineInfo{Caps: caps, State: event.EngineReady}})
	if caps.Has(event.CapAggregates) {
		s.Emit(event.Event{Kind: event.KindAggregates, At: at, Data: &event.Aggregates{}})
	}
	for id := event.RequestID(1); id <= 2; id++ {
		s.Emit(event.Event{Kind: event.KindRequest, At: at, Req: id, State: event.StateQueued, Data: &event.Request{Label: "probe", Probe: true}})
		if id == 1 {
			for i := range 3 {
				s.Emit(event.Event{Kind: event.KindToken, At: at + 40*ms + event.Time(i)*10*ms, Req: id, ID: -1, N: 1, Index: int32(i)})
			}
			s.Emit(event.Event{Kind: event.KindRequest, At: at + 60*ms, Req: id, State: event.StateFinished, Data: &event.Outcome{Prompt: 5, Generated: 3}})
		} else {
			s.Emit(event.Event{Kind: event.KindRequest, At: at + 60*ms, Req: id, State: event.StateFailed, Data: &event.Outcome{Reason: "no"}})
		}
	}
	return s.Snapshot()
}

// TestProbesAreExcludedFromAggregates checks that probes do not count in an engine's aggregates.
func TestProbesAreExcludedFromAggregates(t *testing.T) {
	s := probed(event.CapAggregates)
	c := &s.Counts
	if len(s.Requests) != 2 || !s.Requests[1].Probe {
		t.Fatalf("probes are not among the requests: %+v", s.Requests)
	}
	if c.Finished+c.Failed+c.GeneratedTokens+c.PromptTokens != 0 || len(c.Groups) != 0 || s.Current != nil {
		t.Errorf("probes are counted: %+v", c)
	}
	for name, sum := range map[string]uint64{"TTFT": s.Latency.Of[TTFT][metric.Session].Count, "ITL": s.Latency.Of[ITL][metric.Session].Count, "E2EL": s.Latency.Of[E2EL][metric.Session].Count} {
		if sum != 0 {
			t.Errorf("%s includes %d samples of probes", name, sum)
		}
	}
}

// TestProbesCountWithoutAggregates checks that probes count like other requests if the engine reports single requests.
func TestProbesCountWithoutAggregates(t *testing.T) {
	s := probed(event.CapTokens)
	if s.Counts.Finished != 1 || s.Counts.GeneratedTokens != 3 || s.Latency.Of[TTFT][metric.Session].Count != 1 {
		t.Errorf("%+v", s.Counts)
	}
}
