package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Client is the resource use of llmtop while it measured an engine in another process, and whether llmtop was a
// bottleneck.
type Client struct {
	CPU                 event.Reading `json:"cpu_cores"`                      // used by llmtop, mean
	Cores               event.Reading `json:"cores_available"`                // available to llmtop
	MachineCPU          event.Reading `json:"machine_cpu"`                    // 0..1, of all processes
	ReadLag             *Statistics   `json:"read_lag_s"`                     // from arrival of bytes to their timestamp, measured by a probe; null: no probe
	GCPause             event.Reading `json:"gc_pause_s"`                     // total
	UncountedResponses  int           `json:"uncounted_responses"`            // responses without token counts of the server: each message with text counts as one token
	UnstreamedResponses int           `json:"unstreamed_responses,omitempty"` // responses whose token count does not fit the text that was streamed: their TPOT is not reported
	ClumpedResponses    int           `json:"clumped_responses,omitempty"`    // responses most messages of which came together with others
	Limits              []string      `json:"bottlenecks"`                    // how llmtop was a bottleneck; empty: it was not
}

// Thresholds from which llmtop counts as a bottleneck.
const (
	cpuMatters     = 0.8  // of the available cores
	machineMatters = 0.95 // of all cores, if llmtop uses sharedMatters of its own
	sharedMatters  = 0.1
	lagMatters     = 0.05 // of the shortest median TTFT, at the 99th percentile
	gapMatters     = 0.2  // of the shortest median TPOT, at the 99th percentile
	lateShare      = 0.05 // of the median TTFT, at the median
	minKept        = 0.95 // of the rate of an open loop
	stallMatters   = 0.1  // s, once
)

// Describe returns the statistics of values of one run; nil without values.
func Describe(values []float64) *Statistics {
	s := samples{all: values, runs: [][]float64{values}}
	return s.describe()
}

// shortestMedian returns the lowest median of the points.
func shortestMedian(r *Report, field func(*Point) *Statistics) (least float64, ok bool) {
	for i := range r.Bench.Points {
		if s := field(&r.Bench.Points[i]); s != nil && s.P50.V > 0 && (!ok || s.P50.V < least) {
			least, ok = s.P50.V, true
		}
	}
	return least, ok
}

// clientSection returns the resource use of llmtop, and its bottlenecks.
func clientSection(r *Report) section {
	s := section{title: "Client", left: 1, header: []string{"", ""}}
	if r.Bench == nil || r.Bench.Client == nil {
		return s
	}
	c := r.Bench.Client
	s.rows = append(s.rows, []string{"CPU", fmt.Sprintf("%s (%s available); machine %s", format(c.CPU, metric.Cores), format(c.Cores, metric.Count), format(c.MachineCPU, metric.Percent))})
	if c.ReadLag != nil {
		s.rows = append(s.rows, []string{"read lag", fmt.Sprintf("%s (p50), %s (p99), %s (max)",
			metric.Seconds(c.ReadLag.P50.V), metric.Seconds(c.ReadLag.P99.V), metric.Seconds(c.ReadLag.Max.V))})
	}
	if len(c.Limits) == 0 {
		s.rows = append(s.rows, []string{"bottleneck", "no"})
	}
	for i, why := range c.Limits {
		row := []string{"", why}
		if i == 0 {
			row = []string{"bottleneck", "YES: " + why}
		}
		s.rows = append(s.rows, row)
	}
	if c.UncountedResponses > 0 {
		s.words = append(s.words, fmt.Sprintf("The server did not count the tokens of %s: messages with text were counted instead.", metric.Plural(c.UncountedResponses, "response")))
	}
	if c.ClumpedResponses > 0 {
		s.words = append(s.words, fmt.Sprintf("Most messages of %s arrived together with others: something buffers the stream, such as nginx (proxy_buffering), a proxy that compresses, or the server itself.", metric.Plural(c.ClumpedResponses, "response")))
	}
	if c.UnstreamedResponses > 0 {
		s.words = append(s.words, fmt.Sprintf("The server's token count of %s does not fit the text that it streamed, for example because of hidden reasoning: TPOT is not reported.", metric.Plural(c.UnstreamedResponses, "response")))
	}
	return s
}
