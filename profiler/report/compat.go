package report

import (
	"fmt"
)

// Compat are the numbers of a benchmark as another tool defines them.
type Compat struct {
	Tool   string        `json:"tool"`
	Points []CompatPoint `json:"points"`
}

// CompatPoint are those of one point, over all its runs.
type CompatPoint struct {
	Name   string        `json:"name"`
	Values []CompatValue `json:"values"`
}

// CompatValue is one number in the tool's own words.
type CompatValue struct {
	Name  string `json:"name"`
	Value Number `json:"value"`
	Ours  Number `json:"llmtop"` // the nearest of this program's, in the same unit; null: there is none
}

// Of is one statistic of one of the point's distributions, by their names in JSON, times scale. It is absent for a name that is none.
func (p *Point) Of(distribution, statistic string, scale float64) Number {
	for _, d := range distributions {
		if s := *d.of(p); d.json == distribution && s != nil {
			n := s.of(statistic)
			n.V *= scale
			return n
		}
	}
	return Number{}
}

// compatSections are a table for each point.
func (r *Report) compatSections() (out []section) {
	if r.Bench == nil || r.Bench.Compat == nil {
		return nil
	}
	two := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	for _, p := range r.Bench.Compat.Points {
		s := section{title: p.Name + ", as " + r.Bench.Compat.Tool + " counts", left: 1, header: []string{"", "its own", "llmtop"}}
		for _, v := range p.Values {
			s.rows = append(s.rows, []string{v.Name, two(v.Value.V), short(v.Ours, two)})
		}
		out = append(out, s)
	}
	return out
}
