package alert

import (
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// kind is what the values of a measure are.
type kind uint8

const (
	count kind = iota
	duration
	rate // tokens/s
	share
	size
	cores
)

// measure is a number of a snapshot that a rule can hold against a limit.
type measure struct {
	name  string
	kind  kind
	means string
	read  func(*store.Snapshot, metric.Window) event.Reading
}

// format is a value as the screen writes it.
func (m *measure) format(v float64) string {
	switch m.kind {
	case duration:
		return metric.Seconds(v)
	case rate:
		return metric.Rate(v) + " tok/s"
	case share:
		return metric.Percent(v)
	case size:
		return metric.Bytes(v)
	case cores:
		return metric.Rate(v) + " cores"
	}
	return metric.Count(v)
}

// measures are all there are, in the order of the documentation.
var measures = slices.Concat(
	latencies("ttft", "time to first token, of warm requests", func(l *store.Latency, w metric.Window) *metric.Summary { return &l.TTFT[w] }),
	latencies("itl", "gap between tokens", func(l *store.Latency, w metric.Window) *metric.Summary { return &l.ITL[w] }),
	latencies("tpot", "time per output token, of whole requests", func(l *store.Latency, w metric.Window) *metric.Summary { return &l.TPOT[w] }),
	latencies("queue", "time in the queue", func(l *store.Latency, w metric.Window) *metric.Summary { return &l.STIL[w] }),
	latencies("e2el", "end-to-end latency", func(l *store.Latency, w metric.Window) *metric.Summary { return &l.E2EL[w] }),
	[]measure{
		{"stalls", count, "stalls in the window", func(s *store.Snapshot, w metric.Window) event.Reading {
			return number(s.Latency.StallCount[w])
		}},
		{"goodput", count, "requests a second that met every target, of the last minute", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Latency.Goodput }},
		{"decode", rate, "decode throughput", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Throughput.Decode }},
		{"prefill", rate, "prefill throughput", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Throughput.Prefill }},
		{"ttps", rate, "generated tokens of all requests a second", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Throughput.TTPS }},
		{"running", count, "requests that run", func(s *store.Snapshot, _ metric.Window) event.Reading { return number(s.Throughput.Running) }},
		{"queued", count, "requests that wait", func(s *store.Snapshot, _ metric.Window) event.Reading { return number(s.Throughput.Queued) }},
		{"finished", count, "requests that have finished, of the session", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Sums().Finished }},
		{"failed", count, "requests that have failed, of the session", func(s *store.Snapshot, _ metric.Window) event.Reading { return number(s.Counts.Failed) }},
		{"cancelled", count, "requests that were cancelled, of the session", func(s *store.Snapshot, _ metric.Window) event.Reading { return number(s.Counts.Cancelled) }},
		{"kv", share, "use of the KV cache", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.KV.Usage }},
		{"lost", count, "lost events", func(s *store.Snapshot, _ metric.Window) event.Reading { return number(s.Lost.Total()) }},
		{"cpu", share, "CPU of the machine", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Host.CPU }},
		{"memory", share, "memory of the machine in use", usedMemory},
		{"rss", size, "resident memory of the engine", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Host.Engine.RSS }},
		{"engine_cpu", cores, "CPU of the engine", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Host.Engine.CPU }},
		{"self_cpu", cores, "CPU of llmtop itself", func(s *store.Snapshot, _ metric.Window) event.Reading { return s.Host.Self.OutsideEngine }},
	},
)

// latencies are the percentiles of a distribution, in seconds.
func latencies(name, means string, of func(*store.Latency, metric.Window) *metric.Summary) []measure {
	in := func(of func(*store.Latency, metric.Window) *metric.Summary, value func(*metric.Summary) float64) func(*store.Snapshot, metric.Window) event.Reading {
		return func(s *store.Snapshot, w metric.Window) event.Reading {
			sum := of(&s.Latency, w)
			if sum.Count == 0 {
				return event.Absent(event.NotYet)
			}
			return event.From(value(sum) / 1e9)
		}
	}
	return []measure{
		{name + "_p50", duration, means + ": median", in(of, func(s *metric.Summary) float64 { return float64(s.P50) })},
		{name + "_p95", duration, means + ": 95th percentile", in(of, func(s *metric.Summary) float64 { return float64(s.P95) })},
		{name + "_p99", duration, means + ": 99th percentile", in(of, func(s *metric.Summary) float64 { return float64(s.P99) })},
		{name + "_max", duration, means + ": longest", in(of, func(s *metric.Summary) float64 { return float64(s.Max) })},
		{name + "_mean", duration, means + ": mean", in(of, func(s *metric.Summary) float64 { return s.Mean })},
	}
}

func number[T int | uint64](n T) event.Reading { return event.From(float64(n)) }

func usedMemory(s *store.Snapshot, _ metric.Window) event.Reading {
	used, total := s.Host.MemUsed, s.Host.MemTotal
	if !used.OK() {
		return used
	}
	if !total.OK() || total.V <= 0 {
		return event.Absent(event.NotYet)
	}
	return event.From(used.V / total.V)
}

// Measure is one of the numbers that rules can be about, for documentation.
type Measure struct{ Name, Means, Example string }

// Measures are all numbers that rules can be about.
func Measures() (out []Measure) {
	examples := [...]string{count: "10", duration: "500ms", rate: "20", share: "90%", size: "8GB", cores: "1.5"}
	for _, m := range measures {
		out = append(out, Measure{m.name, m.means, m.name + " > " + examples[m.kind]})
	}
	return out
}

// byName finds a measure, nil if there is none.
func byName(name string) *measure {
	i := slices.IndexFunc(measures, func(m measure) bool { return m.name == strings.ToLower(name) })
	if i < 0 {
		return nil
	}
	return &measures[i]
}

// names are the names of all measures.
func names() string {
	all := make([]string, len(measures))
	for i := range measures {
		all[i] = measures[i].name
	}
	return strings.Join(all, ", ")
}

// finite reports whether a number can be a limit.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 }
