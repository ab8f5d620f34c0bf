package viewtest

import (
	"math"

	"github.com/llmtop/llmtop/profiler/compare"
)

// Compared returns a comparison of two points with all kinds of values.
func Compared() *compare.Result {
	r := &compare.Result{
		Base: "before.json", New: "after.json\x1b[31m", Outcome: compare.Worse, Relative: 0.03,
		Summary:     "tpot +10.0 % (95 %: +8.0 to +12.0 %; threshold 3.0 %) at 32 tokens, 1 at a time",
		Differences: []compare.Difference{{Name: "--threads", Base: "2", New: "1"}},
		Parts:       []compare.PartRow{{Name: "prompt", Base: 0.0178, New: 0.0216}, {Name: "queue", Base: 0.0002, New: 0.0028}, {Name: "other", New: 0.0001}},
	}
	r.Notes = []string{"not checked, because neither side has them recorded: CPU, OS"}
	for _, point := range []string{"32 tokens, 1 at a time", "512 tokens, 4 at a time"} {
		r.Rows = append(
			r.Rows,
			compare.Row{Point: point, Metric: "ttft", Unit: "s", Gate: true, Base: 0.004, New: 0.0042, Change: 0.05, Low: -0.12, High: 0.22, Threshold: 0.03, Outcome: compare.Inconclusive},
			compare.Row{Point: point, Metric: "tpot", Unit: "s", Gate: true, Base: 0.0008, New: 0.00088, Change: 0.1, Low: 0.08, High: 0.12, Threshold: 0.03, Outcome: compare.Worse},
			compare.Row{Point: point, Metric: "e2el", Unit: "s", Gate: true, Base: 0.1, New: 0.099, Change: -0.01, Low: -0.02, High: 0.005, Threshold: 0.03},
			compare.Row{Point: point, Metric: "stil", Unit: "s", Base: 2e-5, New: 3e-4, Change: 14, Low: -1, High: math.Inf(1), Threshold: 10, Outcome: compare.Inconclusive, Why: "too few runs: a side has 1"},
			compare.Row{Point: point, Metric: "prefill", Unit: "tokens/s", Base: 4000, New: 4800, Change: 0.2, Low: 0.15, High: 0.25, Threshold: 0.03, Outcome: compare.Better},
			compare.Row{Point: point, Metric: "decode", Unit: "tokens/s", Base: 1250, New: 1136, Change: -0.09, Low: -0.1, High: -0.08, Threshold: 0.03, Outcome: compare.Worse},
		)
	}
	none := math.NaN()
	r.Rows = append(r.Rows, compare.Row{
		Point: "512 tokens, 8 at a time", Metric: "ttft", Unit: "s", Gate: true, Base: 0.004, New: none, Change: none, Low: none, High: none, P: none,
		Outcome: compare.Inconclusive, Why: "the new side has no finished requests",
	})
	for l := range 8 {
		base, next := make([]float64, 16), make([]float64, 16)
		for e := range base {
			base[e], next[e] = 1.0/16, 1.0/16+0.01*math.Sin(float64(l*16+e))
		}
		r.Shares[0], r.Shares[1] = append(r.Shares[0], base), append(r.Shares[1], next)
		r.Experts = append(r.Experts, compare.LayerDrift{Layer: l})
	}
	return r
}
