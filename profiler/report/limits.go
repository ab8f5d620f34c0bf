package report

import (
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Limits are the measured limits of this machine's processors.
type Limits struct {
	Threads int           `json:"threads"`
	Kernels string        `json:"kernels"`
	Read    event.Reading `json:"read_bytes_per_s"`    // read bandwidth
	Weights event.Reading `json:"weights_bytes_per_s"` // bytes read by matrix-vector products
	Compute event.Reading `json:"compute_flop_per_s"`  // of matrix products within the caches
}

// Write writes the limits for people.
func (l *Limits) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%d threads, %s
read bandwidth    %s/s (memory alone): no decode of a large model is faster
weight bandwidth  %s/s (matrix-vector products): limits decode
compute           %s (matrix products in the caches): limits prefill
`, l.Threads, l.Kernels, format(l.Read, metric.Bytes), format(l.Weights, metric.Bytes), format(l.Compute, metric.Flops))
	return err
}

// estimateLoad estimates the bytes/s that decode reads and the operations/s of prefill. Decode reads all active weights
// and the keys and values of the previous tokens for each token; prefill takes two operations per active weight and
// prompt token.
func (p *Point) estimateLoad(m *Model) {
	if p.Concurrency != 1 || m == nil {
		return
	}
	if p.TPOT != nil && m.WeightBytes.OK() && m.KVBytes.OK() && p.kvLength.n > 0 {
		bytes := m.WeightBytes.V + m.KVBytes.V*p.kvLength.sum/float64(p.kvLength.n)
		if tpot, ok := p.TPOT.Mean.Positive(); ok {
			p.Bandwidth = Measured(bytes / tpot)
		}
	}
	if p.Prefill != nil && m.Active.OK() {
		p.Compute = Measured(2 * m.Active.V * p.Prefill.Mean.V)
	}
}

// limitsSection compares points of one request at a time with the limits of the machine.
func limitsSection(r *Report) section {
	s := section{title: "Memory and compute", left: 1, header: []string{"point", "decode bandwidth", "of read bandwidth", "of weight bandwidth", "prefill compute", "of compute limit"}}
	perSecond := metric.BytesPerSecond
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if !p.Bandwidth.OK() && !p.Compute.OK() {
			continue
		}
		s.rows = append(s.rows, []string{
			p.Name, short(p.Bandwidth, perSecond), short(p.ReadShare, metric.Percent), short(p.WeightsShare, metric.Percent),
			short(p.Compute, metric.Flops), short(p.ComputeShare, metric.Percent),
		})
		if p.ReadShare.OK() {
			s.words = append(s.words, p.Name+": "+p.bound()+".")
		}
	}
	if l := r.Bench.Limits; l != nil && len(s.rows) > 0 {
		s.words = append(s.words, fmt.Sprintf("Limits of this machine with %d threads, %s: read bandwidth %s, weight bandwidth %s, compute %s.",
			l.Threads, l.Kernels, format(l.Read, perSecond), format(l.Weights, perSecond), format(l.Compute, metric.Flops)))
	}
	return s
}

// bound returns whether decode is memory-bound.
func (p *Point) bound() string {
	share := metric.Percent(p.ReadShare.V)
	switch {
	case p.ReadShare.V > 1:
		return "decode reads " + share + " of read bandwidth: weights come from caches"
	case p.ReadShare.V >= verdict.MemoryBound:
		return "memory-bound at " + share + " of read bandwidth"
	}
	return "not memory-bound: decode reads " + share + " of read bandwidth"
}
