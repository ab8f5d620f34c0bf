package exposition

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestAServerInSums: what a server does not tell is not exported, neither as 0.
func TestAServerInSums(t *testing.T) {
	x := New("1.2")
	p := join(x, "http://gpu1:8000")
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "vLLM", Caps: event.CapReports, State: event.EngineReady}})
	for range 2 {
		p.emit(sec, event.Event{Kind: event.KindReport, Data: &event.Report{
			Interval: sec, Running: event.Reading{V: 7, Origin: event.Reported}, Generated: event.From(900), Decode: event.From(900),
		}})
	}
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.Metric[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	if got["llmtop_requests_running"] != 7 || got["llmtop_generated_tokens_total"] != 1800 {
		t.Errorf("exported are %v", got)
	}
	for _, name := range []string{"llmtop_requests_queued", "llmtop_requests_total", "llmtop_prompt_tokens_total", "llmtop_padding_tokens_total", "llmtop_stalls_total"} {
		if v, told := got[name]; told {
			t.Errorf("%s was not told, and is exported as %v", name, v)
		}
	}
}
