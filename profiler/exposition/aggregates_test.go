package exposition

import (
	"fmt"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestAggregateOnlyServer checks that what a server does not report is not exported, not even as 0.
func TestAggregateOnlyServer(t *testing.T) {
	x := New("1.2")
	p := addEngine(x, "http://gpu1:8000")
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady}})
	for range 2 {
		p.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{
			Interval: sec, Running: event.Reading{V: 7, Origin: event.Reported}, Generated: event.DerivedValue(900), Decode: event.DerivedValue(900), KVUsage: event.DerivedValue(0.3),
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
		t.Errorf("exported: %v", got)
	}
	for _, name := range []string{"llmtop_requests_queued", "llmtop_requests_total", "llmtop_prompt_tokens_total", "llmtop_padding_tokens_total", "llmtop_stalls_total", "llmtop_kv_cache_cells", "llmtop_kv_cache_used_cells"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s was not reported, but is exported as %v", name, v)
		}
	}
}

// reportedHistograms returns the exported histograms with origin "reported", by engine and time.
func reportedHistograms(t *testing.T, x *Exporter) map[string]*dto.Metric {
	t.Helper()
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.Metric{}
	for _, f := range families {
		if f.GetName() != reportedTimes.promName {
			continue
		}
		for _, m := range f.Metric {
			if origin := m.Label[2]; origin.GetName() != "origin" || origin.GetValue() != "reported" {
				t.Errorf("origin: %v", origin)
			}
			out[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m
		}
	}
	return out
}

// TestReportedTimes checks that a server's histograms are summed up in their own buckets. If the buckets change,
// counting starts over; each server has its own histograms.
func TestReportedTimes(t *testing.T) {
	x := New("1.0")
	one, other := addEngine(x, "one"), addEngine(x, "other")
	one.emitAggregates()
	one.emitAggregates()
	other.emitAggregates()
	h := reportedHistograms(t, x)["one ttft"].GetHistogram()
	if h.GetSampleCount() != 14 || h.GetSampleSum() != 4 || len(h.Bucket) != 2 || h.Bucket[0].GetCumulativeCount() != 8 || h.Bucket[1].GetCumulativeCount() != 12 || h.Bucket[1].GetUpperBound() != 1 {
		t.Errorf("histogram: %v", h)
	}
	if q := reportedHistograms(t, x)["one queue"].GetHistogram(); q.GetSampleCount() != 14 || q.GetSampleSum() != 2 || len(q.Bucket) != 0 {
		t.Errorf("without buckets: %v", q)
	}
	began := h.GetCreatedTimestamp().AsTime()
	one.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: sec, Histograms: []event.Histogram{
		{Name: event.HistogramTTFT, Count: 3, Sum: sec, Bounds: []int64{sec / 2}, Counts: []uint64{2, 1}},
	}}})
	h = reportedHistograms(t, x)["one ttft"].GetHistogram()
	if h.GetSampleCount() != 3 || len(h.Bucket) != 1 || !h.GetCreatedTimestamp().AsTime().After(began) {
		t.Errorf("after a change of buckets: %v", h)
	}
	if o := reportedHistograms(t, x)["other ttft"].GetHistogram(); o.GetSampleCount() != 7 || len(o.Bucket) != 2 {
		t.Errorf("histogram of the other server: %v", o)
	}
}

// TestHistogramsOfSeveralProcesses checks that histograms start again when what was counted turns out to be of several
// processes.
func TestHistogramsOfSeveralProcesses(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "one")
	p.emitAggregates()
	p.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: sec, Void: true}})
	if all := reportedHistograms(t, x); len(all) != 0 {
		t.Errorf("histograms of several processes: %v", all)
	}
	p.emitAggregates()
	if h := reportedHistograms(t, x)["one ttft"].GetHistogram(); h.GetSampleCount() != 7 {
		t.Errorf("%d after that, want 7", h.GetSampleCount())
	}
}

// TestDisconnectedServerExportsNoCurrentValues checks that a disconnected server keeps its totals and exports no
// current values.
func TestDisconnectedServerExportsNoCurrentValues(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "http://gpu1:8000")
	p.emitAggregates()
	for _, name := range []string{"llmtop_requests_running", "llmtop_reported_number", "llmtop_decode_tokens_per_second", "llmtop_reported_time_seconds"} {
		if !exported(t, x, name) {
			t.Errorf("%s is not exported", name)
		}
	}
	p.emit(sec, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
		Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected},
	}})
	for _, name := range []string{"llmtop_requests_running", "llmtop_reported_number", "llmtop_decode_tokens_per_second"} {
		if exported(t, x, name) {
			t.Errorf("%s is exported for a disconnected server", name)
		}
	}
	if !exported(t, x, "llmtop_reported_time_seconds") {
		t.Error("its histograms are not exported")
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

// TestBucketsAreBounded checks that engines whose buckets exceed the limit export count and sum.
func TestBucketsAreBounded(t *testing.T) {
	x := New("1.0")
	wide := &event.Histogram{Name: event.HistogramTTFT, Count: 1, Sum: sec}
	for i := range MaxBuckets / 4 {
		wide.Bounds = append(wide.Bounds, int64(i+1))
	}
	wide.Counts = make([]uint64, len(wide.Bounds)+1)
	wide.Counts[0] = 1
	for i := range 5 {
		p := addEngine(x, fmt.Sprint("server ", i))
		p.emitAggregates()
		p.emit(sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: sec, Histograms: []event.Histogram{*wide}}})
	}
	buckets := 0
	all := reportedHistograms(t, x)
	for _, m := range all {
		buckets += len(m.GetHistogram().Bucket)
	}
	if last := all["server 4 ttft"].GetHistogram(); buckets > MaxBuckets || len(last.Bucket) != 0 || last.GetSampleCount() != 1 {
		t.Errorf("%d buckets; the last server has %d and %d samples", buckets, len(last.Bucket), last.GetSampleCount())
	}
}

// TestProbesAreNotExported checks that requests made to measure, and those polled from slots, appear in no per-request
// metric.
func TestProbesAreNotExported(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "server")
	p.emitAggregates()
	for i, slot := range []event.Slot{{Request: 7, Prompt: 9, Generated: 10}, {Request: 7, Prompt: 9, Generated: 30}, {}} {
		p.emit(int64(i)*sec, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: sec, Slots: []event.Slot{slot}}})
	}
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if slices.ContainsFunc(latencyMetrics[:], func(i *instrument) bool { return i.promName == f.GetName() }) {
			for _, m := range f.Metric { // the server's own histograms
				if m.Label[1].GetValue() != unknown || m.GetHistogram().GetSampleCount() != 7 {
					t.Errorf("%s is exported: %v", f.GetName(), m)
				}
			}
		}
		switch name := f.GetName(); name {
		case usage.promName, component.promName:
			t.Errorf("%s is exported: %v", name, f.Metric)
		}
	}
	for _, m := range family(t, x, reportedTimes).Metric { // polls measure only the long requests
		if m.Label[1].GetValue() == event.HistogramTPOT {
			t.Errorf("TPOT of requests in slots is exported: %v", m)
		}
	}
}
