// Package compare decides whether one run is worse than another. For each metric it reports the change with its
// confidence interval, the noise between runs of one side, and one of three outcomes.
package compare

import (
	"cmp"
	"math"
	"slices"
)

// Outcome is the conclusion that the data support.
type Outcome int

// The outcomes. Unclear means that the interval is too wide to decide.
const (
	NoWorse Outcome = iota
	Regressed
	Unclear
)

var outcomeNames = [...]string{NoWorse: "no worse", Regressed: "regressed", Unclear: "no verdict"}

func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText returns the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Options set which differences matter.
type Options struct {
	Relative    float64            // changes up to this share of the base value do not matter, 0 to 1
	Practical   map[string]float64 // by metric, in its unit: differences up to this do not matter; nil: Metric.Practical
	Gates       []string           // metrics that decide the outcome; nil: those with Metric.Gate
	Interleaved bool               // run i of the base was measured together with run i of the new side
	Seed        uint64             // seed of the resampling: the same data and seed give the same result
}

// DefaultRelative is the default of Options.Relative.
const DefaultRelative = 0.03

// Result is the outcome of a comparison with its details.
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

	Shares [2][][]float64 `json:"-"` // base and new: each expert's share of the picks, by layer; nil: no picks
}

// Row compares one metric at one point of the workload. Base and New are in the metric's unit; Change and its interval
// are relative to Base. A positive change is worse for a time and better for a rate.
type Row struct {
	Point     string  `json:"point"`
	Metric    string  `json:"metric"`
	Unit      string  `json:"unit"`
	Gate      bool    `json:"gate"`
	Base      float64 `json:"base"`
	New       float64 `json:"new"`
	BaseN     int     `json:"base_samples"` // requests
	NewN      int     `json:"new_samples"`
	Runs      int     `json:"runs"` // of the side with fewer runs
	Change    float64 `json:"change"`
	Low       float64 `json:"change_low"` // 95 % interval
	High      float64 `json:"change_high"`
	Noise     float64 `json:"noise"`     // difference between runs of one side; negative: unknown, too few runs
	Threshold float64 `json:"threshold"` // relative change from which a change matters
	Outcome   Outcome `json:"outcome"`
	Why       string  `json:"why"`
}

// Sides compares a new side with a base. It skips metrics that one of them lacks.
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

// conclude returns the overall outcome: Regressed if any gating metric regressed, NoWorse only if all gating metrics
// are.
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
		r.Notes = append(r.Notes, "no gating metric was measured on both sides")
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

// judge classifies a row. Regressed is a change for the worse beyond threshold and noise whose interval excludes 0.
// NoWorse is an interval that excludes every change for the worse beyond the threshold. Everything else is Unclear.
func (r *Row) judge(m *Metric, est interval) (Outcome, string) {
	change, worst, least := r.Change, r.High, r.Low
	if m.Higher {
		change, worst, least = -r.Change, -r.Low, -r.High
	}
	switch {
	case est.tooFew:
		return Unclear, "too few samples"
	case change > max(r.Threshold, r.Noise) && least > 0:
		return Regressed, "worse by more than the threshold"
	case worst < r.Threshold:
		return NoWorse, "not worse by more than the threshold"
	case change > r.Threshold:
		return Unclear, "worse, but not statistically significant"
	}
	return Unclear, "the interval includes changes beyond the threshold"
}

// gates reports whether m decides the outcome.
func (o *Options) gates(m *Metric) bool {
	if o.Gates == nil {
		return m.Gate
	}
	return slices.Contains(o.Gates, m.Name)
}

// practical returns the absolute difference of m that does not matter.
func (o *Options) practical(m *Metric) float64 {
	if v, ok := o.Practical[m.Name]; ok {
		return v
	}
	return m.Practical
}

// PartRow compares the mean of one TTFT component over requests, in s.
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

// LayerDrift measures how much the routing of a layer changed: the total variation distance of the experts' shares, 0
// to 1, and the expert that changed most.
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
