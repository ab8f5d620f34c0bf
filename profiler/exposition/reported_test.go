package exposition

import (
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestAServerInSums: what a server does not tell is not exported, neither as 0.
func TestAServerInSums(t *testing.T) {
	x := New("1.2")
	p := join(x, "http://gpu1:8000")
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "vLLM", Caps: event.CapReports, State: event.EngineReady}})
	for range 2 {
		p.emit(sec, event.Event{Kind: event.KindReport, Data: &event.Report{
			Interval: sec, Running: event.Reading{V: 7, Origin: event.Reported}, Generated: event.From(900), Decode: event.From(900), KVUsage: event.From(0.3),
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
	for _, name := range []string{"llmtop_requests_queued", "llmtop_requests_total", "llmtop_prompt_tokens_total", "llmtop_padding_tokens_total", "llmtop_stalls_total", "llmtop_kv_cache_cells", "llmtop_kv_cache_used_cells"} {
		if v, told := got[name]; told {
			t.Errorf("%s was not told, and is exported as %v", name, v)
		}
	}
}

// timesOf are the histograms that are told of reported times, by engine and time.
func timesOf(t *testing.T, x *Exporter) map[string]*dto.Metric {
	t.Helper()
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.Metric{}
	for _, f := range families {
		if f.GetName() != counts.spelled {
			continue
		}
		for _, m := range f.Metric {
			if origin := m.Label[2]; origin.GetName() != "origin" || origin.GetValue() != "reported" {
				t.Errorf("the origin is %v", origin)
			}
			out[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m
		}
	}
	return out
}

// TestReportedTimes: what servers count is added up in their own buckets. Other buckets begin anew and are not mixed with those before; each server has
// its own.
func TestReportedTimes(t *testing.T) {
	x := New("1.0")
	one, other := join(x, "one"), join(x, "other")
	one.sums()
	one.sums()
	other.sums()
	h := timesOf(t, x)["one ttft"].GetHistogram()
	if h.GetSampleCount() != 14 || h.GetSampleSum() != 4 || len(h.Bucket) != 2 || h.Bucket[0].GetCumulativeCount() != 8 || h.Bucket[1].GetCumulativeCount() != 12 || h.Bucket[1].GetUpperBound() != 1 {
		t.Errorf("the histogram is %v", h)
	}
	if q := timesOf(t, x)["one queue"].GetHistogram(); q.GetSampleCount() != 14 || q.GetSampleSum() != 2 || len(q.Bucket) != 0 {
		t.Errorf("without buckets it is %v", q)
	}
	began := h.GetCreatedTimestamp().AsTime()
	one.emit(sec, event.Event{Kind: event.KindReport, Data: &event.Report{Interval: sec, Times: []event.Times{
		{Name: event.TimesTTFT, Count: 3, Sum: sec, Bounds: []int64{sec / 2}, Counts: []uint64{2, 1}},
	}}})
	h = timesOf(t, x)["one ttft"].GetHistogram()
	if h.GetSampleCount() != 3 || len(h.Bucket) != 1 || !h.GetCreatedTimestamp().AsTime().After(began) {
		t.Errorf("with other buckets it is %v", h)
	}
	if o := timesOf(t, x)["other ttft"].GetHistogram(); o.GetSampleCount() != 7 || len(o.Bucket) != 2 {
		t.Errorf("the other server's is %v", o)
	}
}

// TestALostServerTellsNothingOfNow: its totals stay, and what it is doing is not known.
func TestALostServerTellsNothingOfNow(t *testing.T) {
	x := New("1.0")
	p := join(x, "http://gpu1:8000")
	p.sums()
	for _, name := range []string{"llmtop_requests_running", "llmtop_reported_number", "llmtop_decode_tokens_per_second", "llmtop_reported_time_seconds"} {
		if !exported(t, x, name) {
			t.Errorf("%s is not told", name)
		}
	}
	p.emit(sec, event.Event{Kind: event.KindEngine, Data: &event.Engine{
		Name: "vLLM", Caps: event.CapReports, State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected},
	}})
	for _, name := range []string{"llmtop_requests_running", "llmtop_reported_number", "llmtop_decode_tokens_per_second"} {
		if exported(t, x, name) {
			t.Errorf("%s is told of a server that has gone", name)
		}
	}
	if !exported(t, x, "llmtop_reported_time_seconds") {
		t.Error("its histograms have gone")
	}
}

func exported(t *testing.T, x *Exporter, name string) bool {
	t.Helper()
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return true
		}
	}
	return false
}

// TestBucketsAreBounded: of engines for whose buckets there is no room, counts and sums are told all the same.
func TestBucketsAreBounded(t *testing.T) {
	x := New("1.0")
	wide := &event.Times{Name: event.TimesTTFT, Count: 1, Sum: sec}
	for i := range MaxBuckets / 4 {
		wide.Bounds = append(wide.Bounds, int64(i+1))
	}
	wide.Counts = make([]uint64, len(wide.Bounds)+1)
	wide.Counts[0] = 1
	for i := range 5 {
		p := join(x, fmt.Sprint("server ", i))
		p.sums()
		p.emit(sec, event.Event{Kind: event.KindReport, Data: &event.Report{Interval: sec, Times: []event.Times{*wide}}})
	}
	buckets := 0
	all := timesOf(t, x)
	for _, m := range all {
		buckets += len(m.GetHistogram().Bucket)
	}
	if last := all["server 4 ttft"].GetHistogram(); buckets > MaxBuckets || len(last.Bucket) != 0 || last.GetSampleCount() != 1 {
		t.Errorf("%d buckets; of the last server %d, %d samples", buckets, len(last.Bucket), last.GetSampleCount())
	}
}

// TestProbesAreAside: llmtop's own requests are in metrics of their own and in no others; so is what was only seen of requests in slots.
func TestProbesAreAside(t *testing.T) {
	x := New("1.0")
	p := join(x, "server")
	p.sums()
	for i, slot := range []event.Slot{{Request: 7, Prompt: 9, Generated: 10}, {Request: 7, Prompt: 9, Generated: 30}, {}} {
		p.emit(int64(i)*sec, event.Event{Kind: event.KindReport, Data: &event.Report{Interval: sec, Slots: []event.Slot{slot}}})
	}
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch name := f.GetName(); name {
		case ttft.spelled, coldTTFT.spelled, tpot.spelled, e2el.spelled, itl.spelled, queue.spelled, usage.spelled, component.spelled:
			t.Errorf("%s is told: %v", name, f.Metric)
		case probe.spelled:
			if len(f.Metric) != 3 || f.Metric[0].GetHistogram().GetSampleCount() != 1 {
				t.Errorf("the times of the probe are %v", f.Metric)
			}
		case probes.spelled:
			if f.Metric[0].GetCounter().GetValue() != 1 {
				t.Errorf("probes: %v", f.Metric)
			}
		}
	}
	if f := family(t, x, probe); len(f.Metric) == 0 {
		t.Error("no probe is told")
	}
	var derived *dto.Metric
	for _, m := range family(t, x, counts).Metric {
		if m.Label[1].GetValue() == event.TimesTPOT {
			derived = m
		}
	}
	if h := derived.GetHistogram(); derived == nil || derived.Label[2].GetValue() != "derived" || h.GetSampleCount() != 1 || h.GetSampleSum() != 0.05 {
		t.Errorf("TPOT of a request in a slot is %v", derived)
	}
}
