package store

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// counting is a report of one interval that counts tokens, requests and durations.
func counting(interval, n float64) *event.Aggregates {
	return &event.Aggregates{
		Interval: int64(interval * second), Running: event.ReportedValue(1), Decode: event.DerivedValue(n / interval), Generated: event.DerivedValue(n), Finished: event.DerivedValue(n),
		Counts: []event.NamedReading{{Name: "finished_stop", Reading: event.DerivedValue(n)}}, Histograms: []event.Histogram{{Name: event.HistogramTTFT, Count: uint64(n), Sum: 9}},
	}
}

// TestVoidReports: counts that turn out to be of several processes are dropped with everything derived from them.
func TestVoidReports(t *testing.T) {
	for _, later := range []*event.Aggregates{{Interval: sec, Void: true}, {Interval: sec, Void: true, Generated: event.DerivedValue(7)}} {
		v := snapshotAfter([]float64{1, 2, 3, 4}, &event.Aggregates{}, counting(1, 900_000), counting(1, 5), later)
		if want := countOf(later.Generated); v.Counts.GeneratedTokens != want || v.Counts.Finished != 0 || len(v.Aggregates.Histograms) > 0 || v.Aggregates.Number("finished_stop") != nil {
			t.Errorf("%+v, numbers %+v", v.Counts, v.Aggregates.Numbers)
		}
		if p := v.Totals().Generated; p.OK() != later.Generated.OK() || v.Throughput.TTPS.OK() && v.Throughput.TTPS.V > 7 {
			t.Errorf("%v generated, TTPS %v", p, v.Throughput.TTPS)
		}
	}
}

// TestTotalsCoverReports: totals are of the session, and their rate is over the time that they cover.
func TestTotalsCoverReports(t *testing.T) {
	// The first of these intervals began a minute before the session, at 0 s, the second one a second before it.
	v := snapshotAfter([]float64{2, 4, 9, 14}, counting(60, 6000), counting(5, 500), counting(5, 500), counting(5, 600))
	if v.Counts.GeneratedTokens != 1600 || v.Counts.Covered != 15*sec {
		t.Errorf("%d tokens in %d s, want 1600 in 15", v.Counts.GeneratedTokens, v.Counts.Covered/sec)
	}
	want(t, "TTPS of the session", v.Throughput.SessionTTPS, 1600./15)
	if s := v.Distribution(TTFT, metric.Session); s.Count != 1600 {
		t.Errorf("%d TTFT, want 1600", s.Count)
	}
	v = snapshotAfter([]float64{2}, counting(60, 6000))
	if d := v.Aggregates.Decode; v.Counts.GeneratedTokens != 0 || d.V != 100 {
		t.Errorf("%d tokens of the minute before the session, %v tokens/s, want 0 and 100", v.Counts.GeneratedTokens, d)
	}
}
