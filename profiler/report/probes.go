package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// probesSection are the times of llmtop's own requests to a server, which are in none of its statistics.
func (r *Report) probesSection() section {
	s := section{title: "Latency of llmtop's own probes", left: 1, header: []string{"", "samples", "mean", "± 95 %", "stddev", "p50", "p90", "p95", "p99", "max"}}
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
		of   *Statistics
	}{{"TTFT", ttft.describe()}, {"TPOT", tpot.describe()}, {"E2EL", e2el.describe()}} {
		if row.of != nil {
			s.rows = append(s.rows, append([]string{row.name, fmt.Sprint(row.of.Count)}, row.of.cells(metric.Seconds)...))
		}
	}
	if failed > 0 {
		s.words = append(s.words, fmt.Sprintf("Probes that failed: %d.", failed))
	}
	return s
}
