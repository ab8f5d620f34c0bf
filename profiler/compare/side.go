package compare

import (
	"fmt"
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
)

// Side is one of the two sides of a comparison.
type Side struct {
	Name       string
	Points     []Point
	Conditions []Condition
	Parts      map[string]float64 // mean TTFT components of warm requests in s
	Experts    [][]float64        // each expert's share of the picks, by layer; nil: no picks
}

// Point is one point of a workload, for example a concurrency, with its repeated runs.
type Point struct {
	Name string // "" if the report has no points
	Runs [][]report.Request
}

func (p *Point) label() string {
	if p.Name == "" {
		return "the whole report as one run"
	}
	return p.Name
}

func (s *Side) point(name string) *Point {
	for i := range s.Points {
		if s.Points[i].Name == name {
			return &s.Points[i]
		}
	}
	return nil
}

// Condition is a property that must be equal on both sides for the comparison to be valid.
type Condition struct{ Name, Value string }

// Difference is a condition that differs.
type Difference struct {
	Name string `json:"name"`
	Base string `json:"base"`
	New  string `json:"new"`
}

// NewSide builds a side from reports. Each report is one run, or several if a benchmark wrote it. All must have the
// same conditions.
func NewSide(name string, reports ...*report.Report) (*Side, error) {
	s := &Side{Name: name, Parts: map[string]float64{}}
	parts, counts := map[string]int{}, [][]float64(nil)
	for i, r := range reports {
		if err := requirePerRequest(r); err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		conditions := conditionsOf(r)
		if i == 0 {
			s.Conditions = conditions
		} else if d := (&Side{Conditions: conditions}).differencesFrom(s); len(d) > 0 {
			return nil, fmt.Errorf("compare %s: reports of one side differ in %s (%s, %s)", name, clean.Name(d[0].Name), clean.Name(d[0].New), clean.Name(d[0].Base))
		}
		s.addRuns(r)
		for _, q := range r.Finished() {
			if q.Cold {
				continue
			}
			for _, part := range q.Parts {
				s.Parts[part.Name] += part.Time.V
				parts[part.Name]++
			}
		}
		counts = addCounts(counts, r.Experts)
	}
	for part, n := range parts {
		s.Parts[part] /= float64(n)
	}
	s.Experts = shares(counts)
	return s, nil
}

// requirePerRequest returns an error for a report without per-request metrics, which the comparison needs.
func requirePerRequest(r *report.Report) error {
	switch {
	case r.Fleet != nil:
		return fmt.Errorf("the report has %d engines: write a report of one with llmtop report --engine NAME --json FILE", len(r.Fleet.Replicas))
	case r.Reported != nil && !slices.ContainsFunc(r.Finished(), func(q report.Request) bool { return q.TTFT.OK() || q.TPOT.OK() || q.E2EL.OK() }):
		return fmt.Errorf("%s reports aggregate metrics only, and the comparison needs per-request metrics: measure it with llmtop bench or through llmtop proxy", clean.Name(r.Engine.Name))
	}
	return nil
}

// addRuns adds the runs of a report: those of its benchmark, or the whole report as one run.
func (s *Side) addRuns(r *report.Report) {
	if r.Bench == nil {
		s.add("", r.Finished())
		return
	}
	byID := map[event.RequestID]report.Request{}
	for _, q := range r.Finished() {
		byID[q.ID] = q
	}
	for _, p := range r.Bench.Points {
		for _, run := range p.Runs {
			var requests []report.Request
			for _, id := range run.Requests {
				if q, ok := byID[id]; ok {
					requests = append(requests, q)
				}
			}
			s.add(p.Name, requests)
		}
	}
}

func (s *Side) add(name string, run []report.Request) {
	p := s.point(name)
	if p == nil {
		s.Points = append(s.Points, Point{Name: name})
		p = &s.Points[len(s.Points)-1]
	}
	p.Runs = append(p.Runs, run)
}

// conditionsOf lists what affects a run besides the engine's code: model, machine and settings. It skips settings that
// only affect display and output.
func conditionsOf(r *report.Report) []Condition {
	var out []Condition
	add := func(name, value string) { out = append(out, Condition{name, value}) }
	if m := r.Model; m != nil {
		add("model", fmt.Sprintf("%s %s, %.0f bytes", m.Name, value(m.Quantisation), m.Bytes.V))
	}
	cores := 0
	if r.Machine.Cores != nil {
		cores = *r.Machine.Cores
	}
	add("machine", fmt.Sprintf("%s, %d cores, %s/%s", value(r.Machine.CPU), cores, value(r.Machine.OS), value(r.Machine.Arch)))
	add("engine", r.Engine.Name)
	add("device", r.Engine.Device)
	for _, name := range slices.Sorted(maps.Keys(r.Configuration)) {
		if !ignoredSettings[name] {
			add("--"+name, r.Configuration[name])
		}
	}
	return out
}

// ignoredSettings are settings that affect only the display or name the source of a report.
var ignoredSettings = map[string]bool{"theme": true, "ascii": true, "no-mouse": true, "fps": true, "replay": true, "attach": true, "ttft-target": true}

func value(s *string) string {
	if s == nil {
		return "unknown"
	}
	return *s
}

// differences lists the conditions that differ between two sides.
func differences(base, next *Side) []Difference {
	out := []Difference{}
	return append(out, next.differencesFrom(base)...)
}

// notRecorded is the value of a condition that a side does not have.
const notRecorded = "not recorded"

// differencesFrom lists the conditions of s that differ from those of base.
func (s *Side) differencesFrom(base *Side) []Difference {
	var out []Difference
	find := func(in []Condition, name string) string {
		for _, c := range in {
			if c.Name == name {
				return c.Value
			}
		}
		return notRecorded
	}
	for _, c := range base.Conditions {
		if v := find(s.Conditions, c.Name); v != c.Value {
			out = append(out, Difference{c.Name, c.Value, v})
		}
	}
	for _, c := range s.Conditions {
		if v := find(base.Conditions, c.Name); v == notRecorded {
			out = append(out, Difference{c.Name, v, c.Value})
		}
	}
	return out
}

func (d Difference) String() string {
	return clean.Name(d.Name) + ": " + clean.Name(d.Base) + " against " + clean.Name(d.New)
}

func addCounts(sum [][]float64, x *report.Experts) [][]float64 {
	if x == nil {
		return sum
	}
	for l, row := range x.Layers {
		if l == len(sum) {
			sum = append(sum, make([]float64, len(row)))
		}
		for e := range min(len(row), len(sum[l])) {
			sum[l][e] += float64(row[e])
		}
	}
	return sum
}

func shares(counts [][]float64) [][]float64 {
	for _, row := range counts {
		total := 0.0
		for _, n := range row {
			total += n
		}
		for e := range row {
			row[e] /= max(total, 1)
		}
	}
	return counts
}
