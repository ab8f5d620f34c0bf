package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// probesSection returns the latencies of llmtop's probes, which are in no other statistics of the server.
func probesSection(r *Report) section {
	s := section{title: "Latency of llmtop's probes", left: 1, header: []string{"", "samples", "mean", "± 95 %", "stddev", "p50", "p90", "p95", "p99", "max"}}
	var ttft, tpot, e2el samples
	failed := 0
	for i := range r.Requests {
		switch q := &r.Requests[i]; {
		case !q.Probe:
		case q.State == event.StateFailed.String():
			failed++
		case q.State == event.StateFinished.String():
			ttft.add(0, q.TTFT)
			tpot.add(0, q.TPOT)
			e2el.add(0, q.E2EL)
		}
	}
	for _, row := range []struct {
		name string
		s    *Statistics
	}{{"TTFT", ttft.describe()}, {"TPOT", tpot.describe()}, {"E2EL", e2el.describe()}} {
		if row.s != nil {
			s.rows = append(s.rows, append([]string{row.name, fmt.Sprint(row.s.Count)}, row.s.cells(metric.Seconds)...))
		}
	}
	if failed > 0 {
		s.words = append(s.words, fmt.Sprintf("Failed probes: %d.", failed))
	}
	return s
}
