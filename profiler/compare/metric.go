package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/report"
)

// Metric is something that requests have and that is compared.
type Metric struct {
	Name      string
	Unit      string
	Higher    bool    // higher is better
	Gate      bool    // decides unless told otherwise
	Practical float64 // a difference that does not matter, in Unit
	of        func(*report.Request) report.Number
}

// Metrics are all that is compared, defined in docs/metrics.md. E2EL decides beside TTFT and TPOT since it alone sees what is in neither, and
// the rates do not, since they say the same as the times. What a model load is part of is compared apart.
var Metrics = []Metric{
	{"ttft", "s", false, true, 200e-6, warm(func(r *report.Request) report.Number { return r.TTFT })},
	{"tpot", "s", false, true, 1e-6, func(r *report.Request) report.Number { return r.TPOT }},
	{"e2el", "s", false, true, 500e-6, warm(func(r *report.Request) report.Number { return r.E2EL })},
	{"stil", "s", false, false, 200e-6, warm(func(r *report.Request) report.Number { return r.STIL })},
	{"itl_p99", "s", false, false, 10e-6, itlTail},
	{"prefill", "tokens/s", true, false, 0, func(r *report.Request) report.Number { return r.PrefillRate }},
	{"decode", "tokens/s", true, false, 0, func(r *report.Request) report.Number { return r.DecodeRate }},
	{"cold_ttft", "s", false, false, 5e-3, coldTTFT},
}

func warm(of func(*report.Request) report.Number) func(*report.Request) report.Number {
	return func(r *report.Request) report.Number {
		if r.Cold {
			return report.Number{}
		}
		return of(r)
	}
}

func coldTTFT(r *report.Request) report.Number {
	if !r.Cold {
		return report.Number{}
	}
	return r.TTFT
}

func itlTail(r *report.Request) report.Number {
	if r.ITL == nil {
		return report.Number{}
	}
	return r.ITL.P99
}

// prompt tells requests of different prompts apart: a request is compared with those of the same prompt alone.
type prompt struct {
	label  string
	tokens int
}

// run holds the logarithms of a metric's values in one run, by prompt. Differences of logarithms are relative differences.
type run map[prompt][]float64

// runs are those of one side.
type runs []run

// values are those above 0: others have no relative difference.
func (p *Point) values(m *Metric) runs {
	out := make(runs, 0, len(p.Runs))
	for _, requests := range p.Runs {
		r := run{}
		for i := range requests {
			q := &requests[i]
			if v, ok := m.of(q).Positive(); ok {
				key := prompt{q.Label, q.Prompt}
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

// comparable are the values of both sides for the prompts that all runs share, or for all prompts as one if they share none.
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

// prompts are the keys in an order that is always the same, which resampling needs.
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

// typical is the run's value: the median of each prompt's requests, and the mean of those over prompts. Of logarithms, that is the
// geometric mean.
func (r run) typical() float64 {
	sum := 0.0
	for _, key := range r.prompts() { // in order, since sums of floats depend on it
		sum += median(r[key])
	}
	return sum / float64(len(r))
}

// typical is the mean over runs.
func (r runs) typical() float64 { return mean(r.each()) }

// each is the typical value of each run.
func (r runs) each() []float64 {
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
