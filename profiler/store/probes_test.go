package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// probed is a store with an engine of some capabilities that has been probed once, and once in vain.
func probed(caps event.Caps) *Snapshot {
	now := event.Time(100 * time.Second)
	s := New(Options{Now: func() event.Time { return now }})
	ms := event.Time(time.Millisecond)
	at := now - event.Time(5*time.Second)
	s.Emit(event.Event{Kind: event.KindEngine, At: at, Data: &event.Engine{Caps: caps, State: event.EngineReady}})
	if caps.Has(event.CapReports) {
		s.Emit(event.Event{Kind: event.KindReport, At: at, Data: &event.Report{}})
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

// TestProbesAreApart keeps llmtop's own requests out of what an engine tells of itself in sum, and sums them up by themselves.
func TestProbesAreApart(t *testing.T) {
	s := probed(event.CapReports)
	c := &s.Counts
	if len(s.Requests) != 2 || !s.Requests[1].Probe {
		t.Fatalf("probes are not among the requests: %+v", s.Requests)
	}
	if c.Finished+c.Failed+c.GeneratedTokens+c.PromptTokens != 0 || len(c.Groups) != 0 || s.Current != nil {
		t.Errorf("probes are counted: %+v", c)
	}
	for name, sum := range map[string]uint64{"TTFT": s.Latency.TTFT[metric.Session].Count, "ITL": s.Latency.ITL[metric.Session].Count, "E2EL": s.Latency.E2EL[metric.Session].Count} {
		if sum != 0 {
			t.Errorf("%s has %d samples of probes", name, sum)
		}
	}
	p := s.Probes()
	if p.Count != 2 || p.Failed != 1 || p.Last == nil || p.Last.ID != 2 {
		t.Fatalf("%+v", p)
	}
	if p.TTFT.V != 0.04 || p.TPOT.V != 0.01 || p.E2EL.V != 0.06 {
		t.Errorf("TTFT %v, TPOT %v, E2EL %v", p.TTFT, p.TPOT, p.E2EL)
	}
}

// TestProbesOfOthers counts the requests of an engine that tells each of them, also those that it calls probes.
func TestProbesOfOthers(t *testing.T) {
	s := probed(event.CapTokens)
	if s.Counts.Finished != 1 || s.Counts.GeneratedTokens != 3 || s.Latency.TTFT[metric.Session].Count != 1 {
		t.Errorf("%+v", s.Counts)
	}
	if p := New(Options{Now: func() event.Time { return 1 }}).Snapshot().Probes(); p.Last != nil || p.TTFT.OK() {
		t.Errorf("%+v of no probes", p)
	}
}
