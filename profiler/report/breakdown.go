package report

import (
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// finished calls f for every finished request of a point.
func (p *Point) finished(byID map[event.RequestID]*Request, f func(*Request)) {
	for _, run := range p.Runs {
		for _, id := range run.Requests {
			if q := byID[id]; q != nil && q.State == event.StateFinished.String() {
				f(q)
			}
		}
	}
}

// describeGroups describes the groups of a point by the TPS of their requests, if there are groups besides the default
// one.
func (p *Point) describeGroups(byID map[event.RequestID]*Request, tps map[string]*samples) {
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

// describeParts computes the mean TTFT components of a point.
func (p *Point) describeParts(byID map[event.RequestID]*Request) {
	var requests []*Request
	p.finished(byID, func(q *Request) { requests = append(requests, q) })
	p.Parts, _ = meanParts(requests)
	_, longest := p.Parts.total()
	p.Dominant = optionalText(longest.Name)
}

// meanParts returns the mean TTFT components, in display order, of the warm requests that have them; of the cold ones
// if there are no others. A component that a request lacks counts as 0, so the means add up to the mean TTFT.
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
