package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// Metric is a number of a request that is compared.
type Metric struct {
	Name      string
	Unit      string
	Higher    bool    // higher is better
	Gate      bool    // decides the outcome by default
	Practical float64 // differences up to this do not matter, in Unit
	value     func(*report.Request) report.Number
}

// Metrics lists the compared metrics, defined in docs/metrics.md. E2EL gates besides TTFT and TPOT because it covers
// time that neither contains. Rates do not gate because they repeat the times. Requests that include a model load are
// compared separately.
var Metrics = func() []Metric {
	out := []Metric{
		latency(store.TTFT), latency(store.TPOT), latency(store.E2EL), latency(store.STIL),
		{"itl_p99", "s", false, false, store.ITL.Row().Practical, itlTail},
		{"prefill", "tokens/s", true, false, 0, func(r *report.Request) report.Number { return r.PrefillRate }},
		{"decode", "tokens/s", true, false, 0, func(r *report.Request) report.Number { return r.DecodeRate }},
	}
	for id := range store.NumLatencies {
		m := latency(id)
		if id.Row().Of != nil && !slices.ContainsFunc(out, func(other Metric) bool { return other.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out
}()

// latency returns the metric of a latency of the catalogue.
func latency(id store.LatencyID) Metric {
	row := id.Row()
	return Metric{strings.TrimSuffix(row.JSON, "_s"), "s", false, row.Gate, row.Practical, func(r *report.Request) report.Number {
		if r.Cold && row.FromQueue {
			return report.Number{}
		}
		return r.Latency(id)
	}}
}

func itlTail(r *report.Request) report.Number {
	if r.ITL == nil {
		return report.Number{}
	}
	return r.ITL.P99
}

// prompt identifies a prompt. A request is only compared with requests of the same prompt.
type prompt struct {
	label  string
	tokens int
}

// run holds the logarithms of a metric's values in one run, by prompt. A difference of logarithms is a relative
// difference.
type run map[prompt][]float64

// runs holds the runs of one side.
type runs []run

// values returns the values of m by run. It skips values of 0, which have no logarithm.
func (p *Point) values(m *Metric) runs {
	out := make(runs, 0, len(p.Runs))
	for _, requests := range p.Runs {
		r := run{}
		for i := range requests {
			q := &requests[i]
			if v, ok := m.value(q).Positive(); ok {
				key := prompt{q.Label, int(q.Prompt.V)}
				r[key] = append(r[key], math.Log(v))
			}
		}
		if len(r) > 0 {
			out = append(out, r)
		}
	}
	return out
}

func (r runs) count() int {
	n := 0
	for _, one := range r {
		for _, values := range one {
			n += len(values)
		}
	}
	return n
}

// comparable returns the values of both sides for the prompts that all runs share. If they share none, it treats all
// prompts as one.
func (r runs) comparable(other runs) (runs, runs) {
	shared := map[prompt]int{}
	for _, one := range slices.Concat(r, other) {
		for key := range one {
			shared[key]++
		}
	}
	keep := func(in runs) runs {
		out := make(runs, len(in))
		for i, one := range in {
			out[i] = run{}
			for key, values := range one {
				if shared[key] == len(r)+len(other) {
					out[i][key] = values
				}
			}
		}
		return out
	}
	if a := keep(r); len(a[0]) > 0 {
		return a, keep(other)
	}
	return r.merged(), other.merged()
}

func (r runs) merged() runs {
	out := make(runs, len(r))
	for i, one := range r {
		for _, key := range one.prompts() {
			out[i] = run{{}: append(out[i][prompt{}], one[key]...)}
		}
	}
	return out
}

// prompts returns the keys in a fixed order, which resampling needs.
func (r run) prompts() []prompt {
	keys := make([]prompt, 0, len(r))
	for key := range r {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b prompt) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.tokens, b.tokens))
	})
	return keys
}

// typical returns the mean over prompts of the median over requests. For logarithms that is the geometric mean.
func (r run) typical() float64 {
	sum := 0.0
	for _, key := range r.prompts() { // in a fixed order, because floating-point sums depend on it
		sum += median(r[key])
	}
	return sum / float64(len(r))
}

// typical returns the mean over runs.
func (r runs) typical() float64 { return mean(r.typicalPerRun()) }

// typicalPerRun returns the typical value of each run.
func (r runs) typicalPerRun() []float64 {
	out := make([]float64, len(r))
	for i, one := range r {
		out[i] = one.typical()
	}
	return out
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
