package report

import "github.com/llmtop/llmtop/profiler/metric"

// The bounds of numbers from buckets.
const (
	boundWithin = "within"
	boundBelow  = "below" // first bucket, from 0 on: the value is at most this
	boundAbove  = "above" // last bucket, without an end: the value is more than this
)

// boundName returns the bound for an edge; "" if there is no number.
func boundName(e metric.Edge) string {
	return [...]string{metric.NoQuantile: "", metric.Within: boundWithin, metric.Below: boundBelow, metric.Above: boundAbove, metric.Exact: ""}[e]
}

// bounded returns a number with the sign of its bound.
func bounded(words, bound string) string {
	switch bound {
	case boundBelow:
		return "<" + words
	case boundAbove:
		return ">" + words
	}
	return words
}
