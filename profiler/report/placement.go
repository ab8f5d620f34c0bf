package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Placement proposes which experts to keep on the faster device if not all fit: the most picked ones. It is valid as
// far as the counted picks represent future traffic.
type Placement struct {
	ExpertBytes event.Reading     `json:"expert_bytes"` // of one expert of one layer
	Experts     int               `json:"experts"`      // of all layers
	Picks       uint64            `json:"picks"`        // picks that the proposal is based on
	Curve       []PlacementBudget `json:"curve"`
	Chosen      *PlacementBudget  `json:"chosen"` // null: no budget given
}

// PlacementBudget is what a number of experts covers.
type PlacementBudget struct {
	Experts  int           `json:"experts"`
	Bytes    event.Reading `json:"bytes"`
	Coverage event.Reading `json:"coverage_share"`   // of all picks, 0 to 1
	Even     event.Reading `json:"even_share"`       // uniform baseline: the share if all experts had equal picks
	Layers   [][]int       `json:"layers,omitempty"` // of the budget that was given: for each layer the experts to keep, in ascending order
}

// Budget is the capacity for experts: Bytes, or else a Share of all experts, 0 to 1.
type Budget struct{ Bytes, Share float64 }

// budgetFor returns what the first n experts cover.
func (p *Placement) budgetFor(ranked *metric.Ranking, n int) PlacementBudget {
	out := PlacementBudget{Experts: n, Coverage: Measured(float64(ranked.Covered(n)) / float64(p.Picks)), Even: Measured(float64(n) / float64(p.Experts))}
	if p.ExpertBytes.OK() {
		out.Bytes = Measured(float64(n) * p.ExpertBytes.V)
	}
	return out
}

// expertBytes returns the size of one expert; experts is their number in all layers.
func (m *Model) expertBytes(experts int) event.Reading {
	b, ok := metric.ExpertBytes(m.Bytes.V, m.WeightBytes.V, int(m.Experts.V), int(m.ExpertsUsed.V), experts)
	if !ok || !m.Bytes.OK() || !m.WeightBytes.OK() {
		return event.Reading{}
	}
	return Measured(b)
}

// placementSection returns the proposal as a table.
func placementSection(r *Report) section {
	s := section{title: "Which experts to keep on the faster device", left: 0, header: []string{"experts kept", "memory", "routing covered", "uniform baseline"}}
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
		cells := row(*c)
		s.words = append(s.words, fmt.Sprintf("A budget of %s experts (%s) keeps %s of the routing on the faster device.", cells[0], cells[1], cells[2]))
		for l, experts := range c.Layers {
			s.words = append(s.words, fmt.Sprintf("Layer %d: %s", l, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(experts)), ", "), "[]")))
		}
	}
	return s
}
