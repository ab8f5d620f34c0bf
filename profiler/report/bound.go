package report

import "github.com/llmtop/llmtop/profiler/metric"

// BoundQuantile is a quantile from buckets: interpolated within a bucket, or only a bound.
type BoundQuantile struct {
	Seconds float64 `json:"value_s"`
	Bound   string  `json:"bound"` // within, below, above
}

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

func boundQuantile(q metric.Quantile) *BoundQuantile {
	if q.Edge == metric.NoQuantile {
		return nil
	}
	return &BoundQuantile{float64(q.At) / 1e9, boundName(q.Edge)}
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

// cell formats the quantile, "-" if absent.
func (q *BoundQuantile) cell() string {
	if q == nil {
		return "-"
	}
	return bounded(metric.Seconds(q.Seconds), q.Bound)
}
