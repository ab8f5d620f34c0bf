package report

import "github.com/llmtop/llmtop/profiler/metric"

// BoundQuantile is a quantile as far as buckets can tell it: interpolated within one, or where only a bound is known on which side of it.
type BoundQuantile struct {
	Seconds float64 `json:"value_s"`
	Bound   string  `json:"bound"` // within, below, above
}

// The words for what a number that is taken from buckets says.
const (
	boundWithin = "within"
	boundBelow  = "below" // the first bucket, which may hold anything from 0 on: at most this
	boundAbove  = "above" // the last bucket, which has no end: more than this
)

// boundOf is the word for an edge; "" where there is no number.
func boundOf(e metric.Edge) string {
	return [...]string{metric.NoQuantile: "", metric.Within: boundWithin, metric.Below: boundBelow, metric.Above: boundAbove}[e]
}

func boundQuantile(q metric.Quantile) *BoundQuantile {
	if q.Edge == metric.NoQuantile {
		return nil
	}
	return &BoundQuantile{float64(q.At) / 1e9, boundOf(q.Edge)}
}

// bounded writes a number with the sign of its bound.
func bounded(words, bound string) string {
	switch bound {
	case boundBelow:
		return "<" + words
	case boundAbove:
		return ">" + words
	}
	return words
}

// words are the quantile as text, "-" where there is none.
func (q *BoundQuantile) words() string {
	if q == nil {
		return "-"
	}
	return bounded(metric.Seconds(q.Seconds), q.Bound)
}
