package report

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Statistics describes samples that are all kept, so its percentiles are exact: interpolated linearly between the two
// nearest samples, like numpy's.
type Statistics struct {
	Count  int           `json:"count"`
	Mean   event.Reading `json:"mean"`
	StdDev event.Reading `json:"stddev"` // of samples; null for a single one
	Low    event.Reading `json:"mean_low"`
	High   event.Reading `json:"mean_high"` // 95 % confidence interval of the mean: over runs if there are at least fewestRuns, otherwise over samples; null for too few
	Min    event.Reading `json:"min"`
	P50    event.Reading `json:"p50"`
	P90    event.Reading `json:"p90"`
	P95    event.Reading `json:"p95"`
	P99    event.Reading `json:"p99"`
	Max    event.Reading `json:"max"`
	TooFew []string      `json:"too_few"` // percentiles with less than one expected sample beyond them
}

// fewestRuns is the fewest runs from which the variation between runs is estimated.
const fewestRuns = 3

// describe returns the statistics; nil without samples.
func (s *samples) describe() *Statistics {
	n := len(s.all)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(s.all))
	mean, dev := moments(s.all)
	out := &Statistics{
		Count: n, Mean: Measured(mean), Min: Measured(sorted[0]), Max: Measured(sorted[n-1]),
		P50: Measured(percentile(sorted, 0.50)), P90: Measured(percentile(sorted, 0.90)),
		P95: Measured(percentile(sorted, 0.95)), P99: Measured(percentile(sorted, 0.99)), TooFew: []string{},
	}
	if n > 1 {
		out.StdDev = Measured(dev)
	}
	for _, p := range []struct {
		name  string
		share float64
	}{{"p90", 0.90}, {"p95", 0.95}, {"p99", 0.99}} {
		if tooFew(float64(n), p.share) {
			out.TooFew = append(out.TooFew, p.name)
		}
	}
	s.interval(out, mean, dev)
	return out
}

// tooFew reports whether less than one of n samples is expected beyond a percentile.
func tooFew(n, share float64) bool { return n*(1-share) < 1-1e-9 }

// interval sets the 95 % confidence interval of the mean by Student's t distribution. Requests of the same run are
// correlated, so runs are the samples if there are enough.
func (s *samples) interval(out *Statistics, mean, dev float64) {
	n := len(s.all)
	if len(s.runs) >= fewestRuns {
		var means []float64
		for _, run := range s.runs {
			if len(run) > 0 {
				m, _ := moments(run)
				means = append(means, m)
			}
		}
		n = len(means)
		_, dev = moments(means)
	}
	if n < 2 {
		return
	}
	half := metric.StudentT(n-1) * dev / math.Sqrt(float64(n))
	out.Low, out.High = Measured(mean-half), Measured(mean+half)
}

// Measured returns a measured number; it is absent if v is not finite.
func Measured(v float64) event.Reading { return event.DerivedValue(v) }

// moments returns the mean and the standard deviation of a sample.
func moments(v []float64) (mean, dev float64) {
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	for _, x := range v {
		dev += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(dev / math.Max(float64(len(v)-1), 1))
}

// percentile returns a percentile of sorted values.
func percentile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// value returns a statistic by its JSON name.
func (s *Statistics) value(name string) event.Reading {
	return map[string]event.Reading{
		"mean": s.Mean, "stddev": s.StdDev, "p50": s.P50, "p90": s.P90, "p95": s.P95, "p99": s.P99, "max": s.Max,
	}[name]
}

// cell formats a statistic, with "?" if there are too few samples; "-" if it is absent.
func (s *Statistics) cell(name string, f func(float64) string) string {
	if s == nil {
		return "-"
	}
	words := short(s.value(name), f)
	if slices.Contains(s.TooFew, name) {
		words += "?"
	}
	return words
}

// cells formats the mean, half the confidence interval, the deviation and the percentiles.
func (s *Statistics) cells(f func(float64) string) []string {
	half := "-"
	if s.High.OK() {
		half = "±" + f((s.High.V-s.Low.V)/2)
	}
	out := []string{s.cell("mean", f), half}
	for _, name := range []string{"stddev", "p50", "p90", "p95", "p99", "max"} {
		out = append(out, s.cell(name, f))
	}
	return out
}

// margin formats the mean with half its confidence interval.
func (s *Statistics) margin(f func(float64) string) string {
	if s == nil {
		return "-"
	}
	if !s.High.OK() {
		return f(s.Mean.V)
	}
	return f(s.Mean.V) + " ±" + f((s.High.V-s.Low.V)/2)
}
