package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
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
	value     func(*report.Request) event.Reading
}

// Metrics lists the compared metrics, defined in docs/metrics.md. E2EL gates besides TTFT and TPOT because it covers
// time that neither contains. Rates do not gate because they repeat the times. Requests that include a model load are
// compared separately.
var Metrics = func() []Metric {
	out := []Metric{
		latency(store.TTFT), latency(store.TPOT), latency(store.E2EL), latency(store.STIL),
		{Name: "itl_p99", Unit: "s", Practical: store.ITL.Row().Practical, value: itlTail},
		{Name: "prefill", Unit: "tokens/s", Higher: true, value: func(r *report.Request) event.Reading { return r.PrefillRate }},
		{Name: "decode", Unit: "tokens/s", Higher: true, value: func(r *report.Request) event.Reading { return r.DecodeRate }},
	}
	for id := range store.NumLatencies {
		m := latency(id)
		if id.Row().Of != nil && !slices.ContainsFunc(out, func(other Metric) bool { return other.Name == m.Name }) {
			out = append(out, m)
		}
	}
	return out
}()

// latency returns the metric of a latency of the catalogue, by the name that it has in alerts.
func latency(id store.LatencyID) Metric {
	row := id.Row()
	return Metric{cmp.Or(row.Alert, strings.TrimSuffix(row.JSON, "_s")), "s", false, row.Gate, row.Practical, func(r *report.Request) event.Reading {
		if r.Cold && row.FromQueue {
			return event.Reading{}
		}
		return r.Latency(id)
	}}
}

func itlTail(r *report.Request) event.Reading {
	if r.ITL == nil {
		return event.Reading{}
	}
	return r.ITL.P99
}

// prompt identifies a prompt. A request is only compared with requests of the same prompt.
type prompt struct {
	label  string
	tokens int // 0: random words, whose number of tokens differs from run to run
}

func promptOf(q *report.Request) prompt {
	if strings.HasPrefix(q.Label, report.ApproximateLength) {
		return prompt{label: q.Label}
	}
	return prompt{q.Label, int(q.Prompt.V)}
}

// values holds the logarithms of a metric's values by prompt. A difference of logarithms is a relative difference.
type values map[prompt][]float64

// run holds the values of one run.
type run struct {
	start time.Time
	values
}

// runs holds the runs of one side.
type runs []run

// values returns the values of m by run. It skips values of 0, which have no logarithm, and runs without values.
func (p *Point) values(m *Metric) runs {
	out := make(runs, 0, len(p.Runs))
	for _, one := range p.Runs {
		r := values{}
		for i := range one.Requests {
			q := &one.Requests[i]
			if v, ok := m.value(q).Positive(); ok {
				key := promptOf(q)
				r[key] = append(r[key], math.Log(v))
			}
		}
		if len(r) > 0 {
			out = append(out, run{one.Start, r})
		}
	}
	return out
}

func (r runs) count() int {
	n := 0
	for _, one := range r {
		for _, v := range one.values {
			n += len(v)
		}
	}
	return n
}

// comparable returns the values of both sides for the prompts that all runs share. If they share none, it treats all
// prompts as one.
func (r runs) comparable(other runs) (runs, runs) {
	shared := map[prompt]int{}
	for _, one := range slices.Concat(r, other) {
		for key := range one.values {
			shared[key]++
		}
	}
	keep := func(in runs) runs {
		out := make(runs, len(in))
		for i, one := range in {
			out[i] = run{one.start, values{}}
			for key, v := range one.values {
				if shared[key] == len(r)+len(other) {
					out[i].values[key] = v
				}
			}
		}
		return out
	}
	if a := keep(r); len(a[0].values) > 0 {
		return a, keep(other)
	}
	return r.merged(), other.merged()
}

func (r runs) merged() runs {
	out := make(runs, len(r))
	for i, one := range r {
		all := slices.Concat(slices.Collect(maps.Values(one.values))...)
		out[i] = run{one.start, values{{}: all}}
	}
	return out
}

// typical returns the mean over prompts of the median over requests. For logarithms that is the geometric mean.
func (v values) typical() float64 {
	medians := make([]float64, 0, len(v))
	for _, one := range v {
		medians = append(medians, metric.Median(one))
	}
	slices.Sort(medians) // floating-point sums depend on the order
	return mean(medians)
}

// typicalPerRun returns the typical value of each run.
func (r runs) typicalPerRun() []float64 {
	out := make([]float64, len(r))
	for i, one := range r {
		out[i] = one.typical()
	}
	return out
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
