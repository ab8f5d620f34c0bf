package report

import (
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Limits are what this machine's processors were measured to reach.
type Limits struct {
	Threads int    `json:"threads"`
	Kernels string `json:"kernels"`
	Copy    Number `json:"copy_bytes_per_s"`    // memory, bytes read and bytes written
	Weights Number `json:"weights_bytes_per_s"` // read by matrix-vector products
	Compute Number `json:"compute_flop_per_s"`  // of matrix products in the caches
}

// Write writes them for people.
func (l *Limits) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%d threads, %s
memory copied          %s/s, bytes read and bytes written
weights read           %s/s by matrix-vector products: the bound of decode
products in the caches %s: the bound of prefill
`, l.Threads, l.Kernels, format(l.Copy, metric.Bytes), format(l.Weights, metric.Bytes), format(l.Compute, metric.Flops))
	return err
}

// bandwidthBound is the share of what memory copies from which on decode is called memory-bound, as on the screen.
const bandwidthBound = 0.6

// AddLimits adds to a report with a benchmark what the machine reaches, and holds its points against that.
func (r *Report) AddLimits(l Limits) {
	r.Bench.Limits = &l
	if !r.Throughput.CopyBandwidth.OK() {
		r.Throughput.CopyBandwidth = l.Copy
		r.Throughput.Absent = absences(r.Throughput)
	}
	of := func(n, limit Number) Number {
		if v, ok := limit.Positive(); ok && n.OK() {
			return Measured(n.V / v)
		}
		return Number{}
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		p.CopyShare, p.WeightsShare, p.ComputeShare = of(p.Bandwidth, l.Copy), of(p.Bandwidth, l.Weights), of(p.Compute, l.Compute)
	}
}

// touch works out what decode reads and what prefill computes a second. A token of decode meets all active weights and the keys and values of the
// tokens before it, one of a prompt two operations for every active weight.
func (p *Point) touch(m *Model) {
	if p.Concurrency != 1 || m == nil {
		return
	}
	if p.TPOT != nil && m.WeightBytes.OK() && p.length.n > 0 {
		bytes := m.WeightBytes.V + m.KVBytes.V*p.length.sum/float64(p.length.n)
		if tpot, ok := p.TPOT.Mean.Positive(); ok {
			p.Bandwidth = Measured(bytes / tpot)
		}
	}
	if p.Prefill != nil && m.Active.OK() {
		p.Compute = Measured(2 * m.Active.V * p.Prefill.Mean.V)
	}
}

// limitsSection says of points of one request at a time how near they come to what the machine reaches.
func (r *Report) limitsSection() section {
	s := section{title: "Memory and compute", left: 1, header: []string{"point", "decode touches", "of copying", "of reading weights", "prefill computes", "of its limit"}}
	if r.Bench == nil {
		return s
	}
	perSecond := func(v float64) string { return metric.Bytes(v) + "/s" }
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if !p.Bandwidth.OK() && !p.Compute.OK() {
			continue
		}
		s.rows = append(s.rows, []string{
			p.Name, short(p.Bandwidth, perSecond), short(p.CopyShare, metric.Percent), short(p.WeightsShare, metric.Percent),
			short(p.Compute, metric.Flops), short(p.ComputeShare, metric.Percent),
		})
		if p.CopyShare.OK() {
			s.words = append(s.words, p.Name+": "+p.bound()+".")
		}
	}
	if l := r.Bench.Limits; l != nil && len(s.rows) > 0 {
		s.words = append(s.words, fmt.Sprintf("Measured on this machine, %d threads, %s: memory copied %s, weights read %s, products %s.",
			l.Threads, l.Kernels, format(l.Copy, perSecond), format(l.Weights, perSecond), format(l.Compute, metric.Flops)))
	}
	return s
}

// bound says what decode is held back by, as far as memory tells.
func (p *Point) bound() string {
	share := metric.Percent(p.CopyShare.V)
	switch {
	case p.CopyShare.V > 1:
		return "decode touches " + share + " of what memory copies: its weights are served by caches"
	case p.CopyShare.V >= bandwidthBound:
		return "memory-bound at " + share + " of copy bandwidth"
	}
	return "not bound by memory: decode touches " + share + " of copy bandwidth"
}
