package report

import (
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// finished calls f with every request of a point that ended well.
func (p *Point) finished(byID map[event.RequestID]*Request, f func(*Request)) {
	for _, run := range p.Runs {
		for _, id := range run.Requests {
			if q := byID[id]; q != nil && q.State == event.StateFinished.String() {
				f(q)
			}
		}
	}
}

// group describes the groups of a point by the TPS of their requests, where there are any besides the default one.
func (p *Point) group(byID map[event.RequestID]*Request, tps map[string]*samples) {
	if _, unnamed := tps[""]; unnamed && len(tps) == 1 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(tps)) {
		g := PointGroup{Name: name, TPS: tps[name].describe()}
		p.finished(byID, func(q *Request) {
			if q.Group == name {
				g.Requests++
				g.Generated += uint64(max(q.Generated, 0))
			}
		})
		p.Groups = append(p.Groups, g)
	}
}

// parts are the means of a point's TTFT components.
func (p *Point) parts(byID map[event.RequestID]*Request) {
	var requests []*Request
	p.finished(byID, func(q *Request) { requests = append(requests, q) })
	p.Parts, _ = meanParts(requests)
	longest := 0.0
	for _, part := range p.Parts {
		if part.Time.V > longest {
			longest, p.Dominant = part.Time.V, text(part.Name)
		}
	}
}

// meanParts are the means of the TTFT components of the warm requests that have them, in drawing order; of the cold ones if there are no others.
// A component that a request lacks counts as nothing, so that the means add up to the mean TTFT.
func meanParts(requests []*Request) (means Parts, cold bool) {
	for _, cold := range []bool{false, true} {
		n := 0
		for _, q := range requests {
			if q.Cold != cold || len(q.Parts) == 0 {
				continue
			}
			n++
			for _, part := range q.Parts {
				i := slices.IndexFunc(means, func(p Part) bool { return p.Name == part.Name })
				if i < 0 {
					means = append(means, Part{Name: part.Name, Time: Measured(0)})
					i = len(means) - 1
				}
				means[i].Time.V += part.Time.V
			}
		}
		for i := range means {
			means[i].Time.V /= float64(n)
		}
		if n > 0 {
			return means, cold
		}
	}
	return nil, false
}
