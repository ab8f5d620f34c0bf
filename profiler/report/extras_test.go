package report

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

func TestCompliance(t *testing.T) {
	counts := tally{targets: store.Targets{TTFT: 100 * time.Millisecond, TPOT: 20 * time.Millisecond}}
	for _, q := range []*Request{
		{State: "finished", Generated: 5, TTFT: Measured(0.05), TPOT: Measured(0.01)},
		{State: "finished", Generated: 5, TTFT: Measured(0.05), TPOT: Measured(0.03)},
		{State: "finished", Generated: 1, TTFT: Measured(0.05)},
		{State: "finished", Generated: 5, TPOT: Measured(0.01)},
		{State: "failed"},
		nil,
		{State: "cancelled", TTFT: Measured(0.01), TPOT: Measured(0.01)},
		{State: "finished", Generated: 5, TTFT: Measured(0.1), TPOT: Measured(0.02)},
	} {
		counts.add(q)
	}
	c := counts.compliance()
	if c.TTFT.V != 4.0/8 || c.TPOT.V != 4.0/8 || c.All.V != 3.0/8 || c.E2EL.OK() {
		t.Errorf("%+v", c)
	}
}

// TestComplianceWithoutGaps checks that answers that came in one piece are judged by their mean time per token, and that
// answers that were not streamed are judged by their end.
func TestComplianceWithoutGaps(t *testing.T) {
	for _, c := range []struct {
		q    Request
		want Compliance
	}{
		{Request{Generated: 20, TTFT: Measured(0.031), E2EL: Measured(0.031)}, Compliance{TTFT: Measured(1), TPOT: Measured(1), All: Measured(1)}},
		{Request{Generated: 20, TTFT: Measured(0.09), E2EL: Measured(0.5)}, Compliance{TTFT: Measured(1), TPOT: Measured(0), All: Measured(0)}},
		{Request{Generated: 20, E2EL: Measured(0.08)}, Compliance{TTFT: Measured(1), TPOT: Measured(1), All: Measured(1)}},
		{Request{Generated: 20, E2EL: Measured(0.2)}, Compliance{TTFT: Measured(0), TPOT: Measured(1), All: Measured(0)}},
		{Request{Generated: 20, Cold: true, TTFT: Measured(9), E2EL: Measured(9)}, Compliance{TTFT: Measured(0), TPOT: Measured(1), All: Measured(0)}},
		{Request{Generated: 20, TTFT: Measured(0.05), Decode: Measured(1), E2EL: Measured(1.05)}, Compliance{TTFT: Measured(1), TPOT: Measured(1), All: Measured(1)}},
		{Request{Generated: 20, TTFT: Measured(0.05)}, Compliance{TTFT: Measured(1), TPOT: Measured(0), All: Measured(0)}},
	} {
		counts := tally{targets: store.Targets{TTFT: 100 * time.Millisecond, TPOT: 20 * time.Millisecond}}
		c.q.State = "finished"
		counts.add(&c.q)
		if got := counts.compliance(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.q, got, c.want)
		}
	}
}

func TestParseTargets(t *testing.T) {
	got, err := ParseTargets("ttft=100ms,e2el=2s")
	if err != nil || got.TTFT != 100*time.Millisecond || got.E2EL != 2*time.Second || got.TPOT != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = ParseTargets("real-time"); err != nil || got.TTFT != 50*time.Millisecond {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "fast", "ttft", "ttft=", "ttft=-1s", "itl=0s", "ttft=1s,", "stil=1s", "ttft>1s", "ttft=1", "ttft=9000h"} {
		if _, err := ParseTargets(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// routed returns a report of a model with two layers of four experts of 100 bytes each, and 400 bytes of other weights.
func routed() *Report {
	return &Report{
		Model: &Model{Bytes: Measured(1200), WeightBytes: Measured(600), Experts: Measured(4), ExpertsUsed: Measured(1)},
		Experts: &Experts{Experts: 4, Used: 1, EveryN: 1, Layers: [][]uint64{
			{70, 10, 10, 10},
			{25, 25, 25, 25},
		}},
	}
}

func TestPlacement(t *testing.T) {
	p := routed().Place(&Budget{Bytes: 350})
	if math.Abs(p.ExpertBytes.V-100) > 1e-9 || p.Experts != 8 || p.Picks != 200 {
		t.Fatalf("%+v", p)
	}
	c := p.Chosen
	if c == nil || c.Experts != 3 || math.Abs(c.Coverage.V-120.0/200) > 1e-9 || c.Even.V != 3.0/8 {
		t.Fatalf("%+v", c)
	}
	if !slices.Equal(c.Layers[0], []int{0}) || !slices.Equal(c.Layers[1], []int{0, 1}) {
		t.Errorf("experts to keep: %v", c.Layers)
	}
	if last := p.Curve[len(p.Curve)-1]; last.Experts != 8 || last.Coverage.V != 1 {
		t.Errorf("all experts cover %+v", last)
	}
	if half := routed().Place(&Budget{Share: 0.5}).Chosen; half.Experts != 4 {
		t.Errorf("half: %+v", half)
	}
	dense := routed()
	dense.Experts = nil
	idle := routed()
	idle.Experts.Layers = [][]uint64{{0, 0, 0, 0}}
	if dense.Place(nil) != nil || idle.Place(nil) != nil {
		t.Error("a placement without picks")
	}
	unknown := routed()
	unknown.Model.WeightBytes = event.Reading{}
	if p := unknown.Place(&Budget{Bytes: 1}); p.ExpertBytes.OK() || p.Chosen != nil || p.Curve[0].Bytes.OK() {
		t.Errorf("sizes without a weight size: %+v", p)
	}
}

func TestEconomics(t *testing.T) {
	e := NewEconomics(Consumption{Source: "RAPL", Joules: 7200, Seconds: 3600, Tokens: 1_000_000, Hour: 2.5})
	if e.PerToken.V != 0.0072 || e.Cost.V != 2.5 {
		t.Errorf("%+v", e)
	}
	e = NewEconomics(Consumption{Source: "RAPL", Joules: 3.6e6, Seconds: 10, Tokens: 500_000, KWh: 0.4})
	if math.Abs(e.Cost.V-0.8) > 1e-12 {
		t.Errorf("a kWh for half a million tokens at 0.4: %v a million", e.Cost.V)
	}
	e = NewEconomics(Consumption{Why: "no RAPL counters", Seconds: 10, Tokens: 5, KWh: 0.4})
	if e.NoSource == nil || *e.NoSource != "no RAPL counters" || e.Cost.OK() || e.Energy.OK() || e.EnergySource != nil || e.Absent["cost_per_million_tokens"] != event.NotReported.String() {
		t.Errorf("without a source: %+v", e)
	}
	if e = NewEconomics(Consumption{Source: "RAPL", Joules: 1, Seconds: 1, Hour: 1}); e.PerToken.OK() || e.Cost.OK() {
		t.Errorf("without tokens: %+v", e)
	}
}
