// Package compat computes the metrics of other benchmarks from response streams by their own definitions, to compare
// them with those of llmtop. The definitions come from the sources named at each tool.
package compat

import (
	"math"
	"slices"
	"strings"
)

// Stream is the response stream of one request. Times are in s on one clock.
type Stream struct {
	Began     float64   // before connecting, where the tools start their clock
	Chat      bool      // sent to a chat interface
	Messages  []Message // in order, without comments
	Prompt    int       // tokens
	Generated int       // tokens
	Failed    bool
}

// Message is one message of a response stream.
type Message struct {
	At        float64
	Choices   bool // has choices, with or without text
	Output    bool // has text other than reasoning
	Reasoning bool
	Done      bool // end mark
}

// text reports whether the message holds any text.
func (m *Message) text() bool { return m.Output || m.Reasoning }

// Run is one run of a workload.
type Run struct {
	Streams  []Stream
	Duration float64 // s, from the first request to the end of the last
}

// Row is one metric under a tool's own name.
type Row struct {
	Name        string
	Value       float64
	Counterpart Counterpart // closest metric of llmtop
}

// Counterpart names the closest metric of llmtop: a distribution over requests, tokens or runs by its name in the
// report, its statistic, and the factor to convert it. The zero value means no counterpart.
type Counterpart struct {
	Metric, Statistic string
	Scale             float64
}

// Tool is another benchmark tool.
type Tool struct {
	Name string // on the command line
	Full string
	Rows func([]Run) []Row
}

// Tools returns all tools.
func Tools() []Tool {
	return []Tool{
		{"vllm", "vllm bench serve", vllm},
		{"sglang", "sglang.bench_serving", sglang},
		{"aiperf", "AIPerf", aiperf},
	}
}

// ByName returns the tool with a name.
func ByName(name string) (Tool, bool) {
	all := Tools()
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return all[i], true
}

// Names returns the names of all tools, separated by commas.
func Names() string {
	var names []string
	for _, t := range Tools() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// mean returns the mean, 0 without values, as the tools do.
func mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// deviation returns the population standard deviation, as numpy does.
func deviation(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / math.Max(float64(len(v)), 1))
}

// percentile interpolates linearly between the two nearest samples, as numpy does. It returns 0 without values.
func percentile(v []float64, percent float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	at := percent / 100 * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	next := min(i+1, len(sorted)-1)
	return sorted[i] + (at-float64(i))*(sorted[next]-sorted[i])
}

// perSecond returns a rate, 0 if duration is 0.
func perSecond(n, duration float64) float64 {
	if duration <= 0 {
		return 0
	}
	return n / duration
}
