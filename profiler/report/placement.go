package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Placement proposes which experts to keep on the faster device where there is not room for all of them: the most picked. It is worth what the
// counted picks are worth for the traffic to come.
type Placement struct {
	ExpertBytes Number            `json:"expert_bytes"` // one expert of one layer
	Experts     int               `json:"experts"`      // of all layers
	Picks       uint64            `json:"picks"`        // that the proposal rests on
	Curve       []PlacementBudget `json:"curve"`
	Chosen      *PlacementChoice  `json:"chosen"` // null: no budget was named
}

// PlacementBudget says what a number of experts covers.
type PlacementBudget struct {
	Experts  int    `json:"experts"`
	Bytes    Number `json:"bytes"`
	Coverage Number `json:"coverage_share"` // of all picks, 0 to 1
	Even     Number `json:"even_share"`     // what as many would cover if all were picked alike
}

// PlacementChoice is the proposal for a budget: for each layer the experts to keep, in ascending order.
type PlacementChoice struct {
	PlacementBudget
	Layers [][]int `json:"layers"`
}

// Budget is how much room there is for experts: Bytes, or else a Share of all of them, 0 to 1.
type Budget struct{ Bytes, Share float64 }

// Place proposes a placement, nil for a dense model, or where no picks were counted. budget may be nil.
func (r *Report) Place(budget *Budget) *Placement {
	x := r.Experts
	if x == nil || r.Model == nil || x.Experts == 0 {
		return nil
	}
	ranked, picks := x.ranked()
	if picks == 0 {
		return nil
	}
	p := &Placement{Experts: len(ranked), Picks: picks, ExpertBytes: r.Model.expertBytes(len(ranked)), Curve: []PlacementBudget{}}
	for _, share := range []float64{0.125, 0.25, 0.5, 0.75, 1} {
		p.Curve = append(p.Curve, p.covered(ranked, int(share*float64(len(ranked)))))
	}
	if budget == nil {
		return p
	}
	n := int(budget.Share * float64(len(ranked)))
	if budget.Bytes > 0 {
		if !p.ExpertBytes.OK() {
			return p
		}
		n = int(budget.Bytes / p.ExpertBytes.V)
	}
	n = min(max(n, 0), len(ranked))
	p.Chosen = &PlacementChoice{PlacementBudget: p.covered(ranked, n), Layers: make([][]int, len(x.Layers))}
	for l := range p.Chosen.Layers {
		p.Chosen.Layers[l] = []int{}
	}
	for _, e := range ranked[:n] {
		p.Chosen.Layers[e.layer] = append(p.Chosen.Layers[e.layer], e.expert)
	}
	for _, experts := range p.Chosen.Layers {
		slices.Sort(experts)
	}
	return p
}

// placed is one expert with its picks.
type placed struct {
	layer, expert int
	picks         uint64
}

// ranked are all experts, the most picked first.
func (x *Experts) ranked() (all []placed, picks uint64) {
	for l, row := range x.Layers {
		for e, n := range row {
			all = append(all, placed{l, e, n})
			picks += n
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(b.picks, a.picks) })
	return all, picks
}

func (p *Placement) covered(ranked []placed, n int) PlacementBudget {
	sum := uint64(0)
	for _, e := range ranked[:n] {
		sum += e.picks
	}
	out := PlacementBudget{Experts: n, Coverage: Measured(float64(sum) / float64(p.Picks)), Even: Measured(float64(n) / float64(len(ranked)))}
	if p.ExpertBytes.OK() {
		out.Bytes = Measured(float64(n) * p.ExpertBytes.V)
	}
	return out
}

// expertBytes is the size of one of so many experts. A token touches all weights but those of the experts that it does not pick; what the size of
// the file and the bytes per token differ by is theirs.
func (m *Model) expertBytes(experts int) Number {
	unused := 1 - float64(m.ExpertsUsed)/float64(max(m.Experts, 1))
	if !m.Bytes.OK() || !m.WeightBytes.OK() || unused <= 0 || m.Bytes.V <= m.WeightBytes.V {
		return Number{}
	}
	return Measured((m.Bytes.V - m.WeightBytes.V) / unused / float64(experts))
}

// placementSection is the proposal as a table.
func (r *Report) placementSection() section {
	s := section{title: "Which experts to keep on the faster device", left: 0, header: []string{"experts kept", "memory", "routing covered", "if all were picked alike"}}
	p := r.Placement
	if p == nil {
		return s
	}
	row := func(b PlacementBudget) []string {
		return []string{fmt.Sprintf("%d of %d", b.Experts, p.Experts), short(b.Bytes, metric.Bytes), short(b.Coverage, metric.Percent), short(b.Even, metric.Percent)}
	}
	for _, b := range p.Curve {
		s.rows = append(s.rows, row(b))
	}
	if c := p.Chosen; c != nil {
		cells := row(c.PlacementBudget)
		s.words = append(s.words, fmt.Sprintf("With room for %s experts (%s), %s of the routing stays on the faster device.", cells[0], cells[1], cells[2]))
		for l, experts := range c.Layers {
			s.words = append(s.words, fmt.Sprintf("Layer %d: %s", l, list(experts)))
		}
	}
	return s
}
