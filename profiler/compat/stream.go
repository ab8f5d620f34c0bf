// Package compat computes the numbers of other benchmarks by their own definitions from how answers came, so that they can be set beside those
// of this program. The definitions were read in the sources that are named at each tool.
package compat

import (
	"math"
	"slices"
	"strings"
)

// Stream is how the answer to one request came. Times are in s on one clock.
type Stream struct {
	Began     float64   // before a connection was looked for: where the tools begin to count
	Chat      bool      // it came from a chat interface
	Messages  []Message // in order, comments left out
	Prompt    int       // tokens
	Generated int       // tokens
	Failed    bool
}

// Message is one message of an answer.
type Message struct {
	At        float64
	Choices   bool // it has choices, with or without text
	Output    bool // it holds text that is no reasoning
	Reasoning bool
	Done      bool // it is the mark of the end
}

// text reports whether the message holds any text.
func (m *Message) text() bool { return m.Output || m.Reasoning }

// Run is one run of a workload.
type Run struct {
	Streams  []Stream
	Duration float64 // s, from the first request to the end of the last
}

// Row is one number in a tool's own words.
type Row struct {
	Name  string
	Value float64
	Of    Of // which number of this program is the nearest
}

// Of names a number of this program: a distribution over requests, tokens or runs by its name in the report, which statistic of it, and what it
// is to be multiplied by. The zero value is none.
type Of struct {
	Metric, Statistic string
	Scale             float64
}

// Tool is another benchmark.
type Tool struct {
	Name string // as it is chosen
	Full string
	Rows func([]Run) []Row
}

// Tools are those that there are.
func Tools() []Tool {
	return []Tool{
		{"vllm", "vllm bench serve", vllm},
		{"sglang", "sglang.bench_serving", sglang},
		{"aiperf", "AIPerf", aiperf},
	}
}

// ByName finds a tool.
func ByName(name string) (Tool, bool) {
	all := Tools()
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return all[i], true
}

// Names are the tools' names, for people.
func Names() string {
	var names []string
	for _, t := range Tools() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// mean is 0 for none, as the tools have it.
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

// deviation is the population's standard deviation, as numpy's.
func deviation(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / math.Max(float64(len(v)), 1))
}

// percentile lies between the two nearest samples in proportion, as numpy's. It is 0 for none.
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

// over is a rate, 0 where no time has passed.
func over(n, duration float64) float64 {
	if duration <= 0 {
		return 0
	}
	return n / duration
}
