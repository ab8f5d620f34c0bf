package report

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// AddBench adds a benchmark to the report of its session. Points come with their runs and are described here. There is
// at least one set of targets; the first is that of goodput.
func (r *Report) AddBench(points []Point, failed int, targets []Targets) {
	r.Bench = &Bench{Definitions: Definitions, Targets: targets[0].Name, Points: []Point{}, Failed: failed}
	for _, p := range points {
		r.AddPoint(p, targets)
	}
}

// AddPoint adds a point to a benchmark.
func (r *Report) AddPoint(p Point, targets []Targets) {
	p.describe(requestsByID(r), targets)
	p.estimateLoad(r.Model)
	r.Bench.Points = append(r.Bench.Points, p)
}

// AddClient adds the client of a benchmark and checks whether it was a bottleneck.
func (r *Report) AddClient(c Client) {
	c.Limits = []string{}
	limit := func(format string, args ...any) { c.Limits = append(c.Limits, fmt.Sprintf(format, args...)) }
	cores, ok := c.Cores.Positive()
	share := 0.0
	if ok && c.CPU.OK() {
		share = c.CPU.V / cores
	}
	switch {
	case share >= cpuMatters:
		limit("it used %s of %s available cores", metric.Rate(c.CPU.V), metric.Count(cores))
	case share >= sharedMatters && c.MachineCPU.OK() && c.MachineCPU.V >= machineMatters:
		limit("it used %s while the machine was %s busy", metric.Cores(c.CPU.V), metric.Percent(c.MachineCPU.V))
	}
	if c.ReadLag != nil {
		lag := c.ReadLag.P99.V
		if longest := c.ReadLag.Max.V; longest >= stallMatters {
			limit("it stood still for up to %s: the longest TTFT and gaps may be its own", metric.Seconds(longest))
		}
		if ttft, ok := shortestMedian(r, func(p *Point) *Statistics { return p.TTFT }); ok && lag >= lagMatters*ttft {
			limit("read lag was %s (p99), %s of the shortest median TTFT", metric.Seconds(lag), metric.Percent(lag/ttft))
		}
		if tpot, ok := shortestMedian(r, func(p *Point) *Statistics { return p.TPOT }); ok && lag >= gapMatters*tpot {
			limit("read lag was %s (p99), %s of the shortest median TPOT", metric.Seconds(lag), metric.Percent(lag/tpot))
		}
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		late, kept := p.ownDelays()
		switch {
		case late == nil:
		case kept < minKept:
			limit("%s: it sent %s of the rate", p.Name, metric.Percent(kept))
		case p.TTFT != nil && late.P50.V >= max(lateShare*p.TTFT.P50.V, visibleDelay):
			limit("%s: requests were sent %s late (p50), %s of the median TTFT", p.Name, metric.Seconds(late.P50.V), metric.Percent(late.P50.V/p.TTFT.P50.V))
		case late.Max.V >= stallMatters:
			limit("%s: it sent requests up to %s late", p.Name, metric.Seconds(late.Max.V))
		}
	}
	r.Bench.Client = &c
}

// AddLimits adds the limits of the machine to a benchmark and compares its points with them.
func (r *Report) AddLimits(l Limits) {
	r.Bench.Limits = &l
	const bandwidth = "read_bandwidth_bytes_per_s"
	if !r.Throughput.Of(bandwidth).OK() {
		r.Throughput.set(bandwidth, l.Read)
	}
	share := func(n, limit event.Reading) event.Reading {
		if v, ok := limit.Positive(); ok && n.OK() {
			return Measured(n.V / v)
		}
		return event.Reading{}
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		p.ReadShare, p.WeightsShare, p.ComputeShare = share(p.Bandwidth, l.Read), share(p.Bandwidth, l.Weights), share(p.Compute, l.Compute)
	}
}

// Place proposes a placement; nil for a dense model or without picks. budget may be nil.
func (r *Report) Place(budget *Budget) *Placement {
	x := r.Experts
	if x == nil || r.Model == nil || x.Experts == 0 {
		return nil
	}
	var ranked metric.Ranking
	ranked.Rank(slices.Concat(x.Layers...))
	all := ranked.Len()
	if ranked.Total() == 0 {
		return nil
	}
	p := &Placement{Experts: all, Picks: ranked.Total(), ExpertBytes: r.Model.expertBytes(all), Curve: []PlacementBudget{}}
	for _, share := range []float64{0.125, 0.25, 0.5, 0.75, 1} {
		p.Curve = append(p.Curve, p.budgetFor(&ranked, int(share*float64(all))))
	}
	if budget == nil {
		return p
	}
	n := int(budget.Share * float64(all))
	if budget.Bytes > 0 {
		if !p.ExpertBytes.OK() {
			return p
		}
		n = int(budget.Bytes / p.ExpertBytes.V)
	}
	n = min(max(n, 0), all)
	chosen := p.budgetFor(&ranked, n)
	p.Chosen, chosen.Layers = &chosen, make([][]int, len(x.Layers))
	for l := range p.Chosen.Layers {
		p.Chosen.Layers[l] = []int{}
	}
	for i := range n {
		l, e := ranked.At(i)/x.Experts, ranked.At(i)%x.Experts
		p.Chosen.Layers[l] = append(p.Chosen.Layers[l], e)
	}
	for _, experts := range p.Chosen.Layers {
		slices.Sort(experts)
	}
	return p
}
