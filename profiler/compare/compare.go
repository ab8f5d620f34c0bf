// Package compare decides whether one run is worse than another: for each metric the difference with its interval, what the runs
// differ by among themselves, and one of three outcomes.
package compare

import (
	"cmp"
	"math"
	"slices"
)

// Outcome is what the data allow to say.
type Outcome int

// The outcomes. Unclear: the interval is too wide to tell.
const (
	NoWorse Outcome = iota
	Regressed
	Unclear
)

var outcomeNames = [...]string{NoWorse: "no worse", Regressed: "regressed", Unclear: "no verdict"}

func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Options say how large a difference matters.
type Options struct {
	Relative    float64            // share of the base value that does not matter, 0 to 1
	Practical   map[string]float64 // by metric, in its unit: a difference that does not matter; nil: as the metrics say
	Gates       []string           // the metrics that decide; nil: those that do by default
	Interleaved bool               // run i of the base ran beside run i of the new side
	Seed        uint64             // of the resampling: same data, same seed, same result
}

// DefaultRelative is the relative difference that does not matter unless told otherwise.
const DefaultRelative = 0.03

// Result is a comparison.
type Result struct {
	Base        string       `json:"base"`
	New         string       `json:"new"`
	Outcome     Outcome      `json:"outcome"`
	Relative    float64      `json:"relative_threshold"`
	Differences []Difference `json:"different_conditions"`
	Rows        []Row        `json:"metrics"`
	Parts       []PartRow    `json:"ttft_components"`
	Experts     []LayerDrift `json:"experts"`
	Notes       []string     `json:"notes"`

	Shares [2][][]float64 `json:"-"` // base and new: layer by layer, each expert's share of the picks; nil: none
}

// Row compares one metric at one point of the workload. Base and New are in the metric's unit, Change and its interval relative to Base:
// above 0 is more, which is worse for a time and better for a rate.
type Row struct {
	Point     string  `json:"point"`
	Metric    string  `json:"metric"`
	Unit      string  `json:"unit"`
	Gate      bool    `json:"gate"`
	Base      float64 `json:"base"`
	New       float64 `json:"new"`
	BaseN     int     `json:"base_samples"` // requests
	NewN      int     `json:"new_samples"`
	Runs      int     `json:"runs"` // of the side that has fewer
	Change    float64 `json:"change"`
	Low       float64 `json:"change_low"` // 95 % interval
	High      float64 `json:"change_high"`
	Noise     float64 `json:"noise"`     // what runs of one side differ by; negative: not known, since there are too few
	Threshold float64 `json:"threshold"` // relative change that matters here
	Outcome   Outcome `json:"outcome"`
	Why       string  `json:"why"`
}

// Sides compares a new side with a base. Metrics that one of them lacks are left out.
func Sides(base, next *Side, o Options) *Result {
	r := &Result{
		Base: base.Name, New: next.Name, Relative: o.Relative, Differences: differences(base, next),
		Parts: compareParts(base, next), Experts: drift(base, next),
		Rows: []Row{}, Notes: []string{}, Shares: [2][][]float64{base.Experts, next.Experts},
	}
	for _, point := range base.Points {
		other := next.point(point.Name)
		if other == nil {
			r.Notes = append(r.Notes, "only the base has "+point.label())
			continue
		}
		for i := range Metrics {
			m := &Metrics[i]
			if row, ok := compareMetric(m, &point, other, o); ok {
				r.Rows = append(r.Rows, row)
			}
		}
	}
	for _, point := range next.Points {
		if base.point(point.Name) == nil {
			r.Notes = append(r.Notes, "only the new side has "+point.label())
		}
	}
	r.Outcome = r.conclude()
	return r
}

// conclude: one metric that regressed is enough; without one, every metric that decides must be known to be no worse.
func (r *Result) conclude() Outcome {
	out, gates := NoWorse, 0
	for _, row := range r.Rows {
		if !row.Gate {
			continue
		}
		gates++
		switch {
		case row.Outcome == Regressed:
			return Regressed
		case row.Outcome == Unclear:
			out = Unclear
		}
	}
	if gates == 0 {
		r.Notes = append(r.Notes, "no metric that decides is in both")
		return Unclear
	}
	return out
}

func compareMetric(m *Metric, base, next *Point, o Options) (Row, bool) {
	a, b := base.values(m), next.values(m)
	row := Row{
		Point: base.Name, Metric: m.Name, Unit: m.Unit, Gate: o.gates(m), BaseN: a.count(), NewN: b.count(),
		Runs: min(len(a), len(b)), Noise: -1,
	}
	if row.BaseN == 0 || row.NewN == 0 {
		return row, false
	}
	a, b = a.comparable(b)
	row.Base, row.New = math.Exp(a.typical()), math.Exp(b.typical())
	est := estimate(a, b, o)
	row.Change, row.Low, row.High = math.Expm1(est.diff), math.Expm1(est.low), math.Expm1(est.high)
	row.Threshold = max(o.Relative, o.practical(m)/row.Base)
	if noise, ok := noiseFloor(a, b); ok {
		row.Noise = math.Expm1(noise)
	}
	row.Outcome, row.Why = row.judge(m, est)
	return row, true
}

// judge: a regression is a change for the worse that matters, is more than noise, and whose interval leaves 0 out; no worse is an interval
// that leaves out every change for the worse that matters. Noise makes both harder.
func (r *Row) judge(m *Metric, est interval) (Outcome, string) {
	change, worst, least := r.Change, r.High, r.Low
	if m.Higher {
		change, worst, least = -r.Change, -r.Low, -r.High
	}
	switch {
	case est.few:
		return Unclear, "too few samples"
	case change > max(r.Threshold, r.Noise) && least > 0:
		return Regressed, "worse by more than matters"
	case worst < r.Threshold:
		return NoWorse, "a change that matters is ruled out"
	case change > r.Threshold:
		return Unclear, "looks worse, but may be chance"
	}
	return Unclear, "a change that matters is not ruled out"
}

func (o *Options) gates(m *Metric) bool {
	if o.Gates == nil {
		return m.Gate
	}
	return slices.Contains(o.Gates, m.Name)
}

func (o *Options) practical(m *Metric) float64 {
	if v, ok := o.Practical[m.Name]; ok {
		return v
	}
	return m.Practical
}

// PartRow compares one TTFT component: the mean over requests, in s.
type PartRow struct {
	Name string  `json:"name"`
	Base float64 `json:"base_s"`
	New  float64 `json:"new_s"`
}

func compareParts(base, next *Side) []PartRow {
	rows := []PartRow{}
	for name, v := range base.Parts {
		rows = append(rows, PartRow{Name: name, Base: v, New: next.Parts[name]})
	}
	for name, v := range next.Parts {
		if _, both := base.Parts[name]; !both {
			rows = append(rows, PartRow{Name: name, New: v})
		}
	}
	slices.SortFunc(rows, func(a, b PartRow) int {
		if c := cmp.Compare(max(b.Base, b.New), max(a.Base, a.New)); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return rows
}

// LayerDrift says how much of a layer's routing goes elsewhere: half the sum of the differences between the experts' shares (total
// variation distance), 0 to 1, and which expert changed most.
type LayerDrift struct {
	Layer  int     `json:"layer"`
	Drift  float64 `json:"drift"`
	Expert int     `json:"expert"`
	Change float64 `json:"change"` // of that expert's share
}

func drift(base, next *Side) []LayerDrift {
	out := []LayerDrift{}
	if len(base.Experts) != len(next.Experts) {
		return out
	}
	for l, row := range base.Experts {
		other := next.Experts[l]
		if len(row) != len(other) {
			return []LayerDrift{}
		}
		d := LayerDrift{Layer: l}
		for e := range row {
			change := other[e] - row[e]
			d.Drift += math.Abs(change) / 2
			if math.Abs(change) > math.Abs(d.Change) {
				d.Expert, d.Change = e, change
			}
		}
		out = append(out, d)
	}
	return out
}
