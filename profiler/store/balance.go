package store

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// balanceSpan is how many seconds one point of the trend covers.
const balanceSpan = 10

// BalancePoint is the imbalance of each layer while decoding in the ten seconds up to the end of a second.
type BalancePoint struct {
	Second  int64
	MaxMean []float32 // by layer; NaN with fewer than 16 picks per expert
}

// balance returns the point of a second that has ended.
func (x *experts) balance(sec int64) []float32 {
	from := x.countsAtEndOf(sec - balanceSpan)
	counts, all := from.counts[metric.Decode], x.current.counts[metric.Decode]
	out, row := make([]float32, x.layers), make([]uint64, x.experts)
	for l := range out {
		for e := range row {
			i := l*x.experts + e
			row[e] = all[i] - min(counts[i], all[i])
		}
		out[l] = float32(math.NaN())
		if b := metric.BalanceOf(row); b.Total >= metric.LeastPicks*uint64(x.experts) {
			out[l] = float32(b.MaxMean)
		}
	}
	return out
}

// Imbalance returns max/mean of the most imbalanced layer while decoding, of those with at least 16 picks per expert;
// NotYet without one, and NotReported if the engine does not report picks.
func Imbalance(s *Snapshot, w metric.Window) (layer int, maxMean event.Reading) {
	x := s.Experts
	if x == nil {
		if s.Engine.Caps != 0 && !s.Engine.Caps.Has(event.CapExperts) {
			return -1, event.Absent(event.NotReported)
		}
		return -1, event.Absent(event.NotYet)
	}
	layer, maxMean = -1, event.Absent(event.NotYet)
	for l, h := range x.Hits(w, metric.Decode).Layers {
		if h.Total >= metric.LeastPicks*uint64(x.Experts) && h.MaxMean > maxMean.V {
			layer, maxMean = l, event.DerivedValue(h.MaxMean)
		}
	}
	return layer, maxMean
}
