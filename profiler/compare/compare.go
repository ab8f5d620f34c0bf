// Package compare decides whether one run is worse than another. For each metric it reports the change with its
// confidence interval and one of four outcomes.
package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Outcome is the conclusion that the data support.
type Outcome int

// The outcomes. Inconclusive means that there is no data, or not enough to decide.
const (
	NoWorse Outcome = iota
	Better
	Worse
	Inconclusive
)

var outcomeNames = [...]string{NoWorse: "no worse", Better: "better", Worse: "worse", Inconclusive: "inconclusive"}

func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText returns the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Options set which differences matter.
type Options struct {
	Relative  float64            // changes up to this share of the base value do not matter, 0 to 1
	Practical map[string]float64 // by metric, in its unit: differences up to this do not matter; nil: Metric.Practical
	Gates     []string           // metrics that decide the outcome; nil: those with Metric.Gate
}

// falseAlarms is the share of comparisons of equal sides that may report a change, over all gates. Half of it is for
// changes for the worse.
const falseAlarms = 0.02

// Result is the outcome of a comparison with its details.
type Result struct {
	Base        string       `json:"base"`
	New         string       `json:"new"`
	Outcome     Outcome      `json:"outcome"`
	Summary     string       `json:"summary"` // the metric that decided, with its change and margin, or why none could
	Relative    float64      `json:"relative_threshold"`
	Limit       float64      `json:"p_limit"` // a change is significant up to this Row.P
	Differences []Difference `json:"different_conditions"`
	Rows        []Row        `json:"metrics"`
	Parts       []PartRow    `json:"ttft_components"`
	Experts     []LayerDrift `json:"experts"`
	Notes       []string     `json:"notes"`
}

// Row compares one metric at one point of the workload. Base and New are in the metric's unit; Change and its interval
// are relative to Base. A positive change is worse for a time and better for a rate. Unknown numbers are NaN, and null
// in JSON.
type Row struct {
	Point     string  `json:"point"`
	Metric    string  `json:"metric"`
	Unit      string  `json:"unit"`
	Gate      bool    `json:"gate"`
	Base      float64 `json:"base"`
	New       float64 `json:"new"`
	BaseN     int     `json:"base_samples"` // requests
	NewN      int     `json:"new_samples"`
	Runs      int     `json:"runs"`     // of the side with fewer runs
	InTurns   bool    `json:"in_turns"` // the runs of both sides alternated
	Change    float64 `json:"change"`
	Low       float64 `json:"change_low"` // 95 % interval; infinite with too few runs
	High      float64 `json:"change_high"`
	P         float64 `json:"p"`         // probability of such a change, in its direction, between equal sides
	Threshold float64 `json:"threshold"` // relative change from which a change matters
	Outcome   Outcome `json:"outcome"`
	Why       string  `json:"why"`

	higher   bool // higher is better
	onlyCold bool // it has no data, because a side has it only of cold requests
}

// Sides compares a new side with a base. It skips metrics without data, unless they decide: they are inconclusive.
func Sides(base, next *Side, o Options) *Result {
	r := &Result{
		Base: base.Name, New: next.Name, Relative: o.Relative, Differences: append([]Difference{}, next.differencesFrom(base)...),
		Parts: compareParts(base, next), Experts: drift(base, next),
		Rows: []Row{}, Notes: append(unchecked(base, next), disturbances(base, next)...),
	}
	points := slices.Clone(base.Points)
	for _, point := range next.Points {
		if base.point(point.Name) == nil {
			points = append(points, Point{Name: point.Name})
		}
	}
	for _, point := range points {
		other := next.point(point.Name)
		if other == nil {
			other = &Point{Name: point.Name}
		}
		for i := range Metrics {
			if row := compareMetric(&Metrics[i], &point, other, o); row.Gate || !math.IsNaN(row.Change) {
				r.Rows = append(r.Rows, row)
			}
		}
	}
	r.judge()
	return r
}

// NeedsRuns reports whether more runs may decide an inconclusive comparison, and how many turns were measured: 0 if the
// runs were not in turns. They cannot if a gate has no data.
func (r *Result) NeedsRuns() (turns int, ok bool) {
	for i := range r.Rows {
		row := &r.Rows[i]
		switch {
		case !row.Gate:
		case math.IsNaN(row.Change):
			return 0, false
		case row.Outcome == Inconclusive:
			ok = r.Outcome == Inconclusive
			if row.InTurns {
				turns = max(turns, row.Runs)
			}
		}
	}
	return turns, ok
}

// NoData returns the gates that lack data at a point and leave the comparison inconclusive, the other gates, and whether
// the requests that a side has of one of them are all cold. Points that are meant to be cold do not count as such.
func (r *Result) NoData() (gates, others []string, onlyCold bool) {
	if r.Outcome != Inconclusive {
		return nil, nil, false
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Gate && math.IsNaN(row.Change) && !slices.Contains(gates, row.Metric) {
			gates, onlyCold = append(gates, row.Metric), onlyCold || row.onlyCold && row.Point == ""
		}
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Gate && !slices.Contains(gates, row.Metric) && !slices.Contains(others, row.Metric) {
			others = append(others, row.Metric)
		}
	}
	return gates, others, onlyCold
}

// judge sets the outcome of each row, and the overall one: Worse if any gate is worse; otherwise Inconclusive if any
// is; otherwise Better if any is.
func (r *Result) judge() {
	gates := 0
	for _, row := range r.Rows {
		if row.Gate && !math.IsNaN(row.Change) {
			gates++
		}
	}
	r.Limit = falseAlarms / 2 / float64(max(gates, 1))
	r.Outcome, r.Summary = Inconclusive, "no requests were measured"
	var deciding *Row
	for i := range r.Rows {
		row := &r.Rows[i]
		row.judge(r.Limit)
		if row.Gate && (deciding == nil || row.decidesOver(deciding)) {
			deciding = row
		}
	}
	if deciding != nil {
		r.Outcome, r.Summary = deciding.Outcome, deciding.summary()
	}
}

// decidesOver reports whether the outcome of r takes precedence, or is the clearer of two equal ones.
func (r *Row) decidesOver(other *Row) bool {
	rank := [...]int{NoWorse: 0, Better: 1, Inconclusive: 2, Worse: 3}
	if r.Outcome != other.Outcome {
		return rank[r.Outcome] > rank[other.Outcome]
	}
	change, _, worst := r.forTheWorse()
	otherChange, _, otherWorst := other.forTheWorse()
	switch r.Outcome {
	case Worse:
		return change > otherChange
	case Better:
		return change < otherChange
	case NoWorse:
		return worst > otherWorst
	}
	return math.IsNaN(change) && !math.IsNaN(otherChange)
}

// compareMetric compares a metric at one point. Without data the change is NaN.
func compareMetric(m *Metric, base, next *Point, o Options) Row {
	a, b := base.values(m), next.values(m)
	unknown := math.NaN()
	row := Row{
		Point: base.Name, Metric: m.Name, Unit: m.Unit, Gate: o.gates(m), BaseN: a.count(), NewN: b.count(),
		Runs: min(len(a), len(b)), higher: m.Higher, Base: unknown, New: unknown, Change: unknown, Low: unknown, High: unknown, P: unknown, Threshold: o.Relative,
	}
	switch {
	case len(a) == 0:
		row.Why, row.onlyCold = base.missing(m, "base")
		return row
	case len(b) == 0:
		row.Why, row.onlyCold = next.missing(m, "new side")
		return row
	}
	a, b = a.comparable(b)
	est := newEstimate(a, b)
	row.Base, row.New = math.Exp(mean(a.typicalPerRun())), math.Exp(mean(b.typicalPerRun()))
	low, high := est.interval()
	row.Change, row.Low, row.High = math.Expm1(est.diff), math.Expm1(low), math.Expm1(high)
	row.P, row.InTurns = est.chance(), inTurns(a, b)
	row.Threshold = max(o.Relative, o.practical(m)/row.Base)
	return row
}

// missing says why a side has no data of a metric, and whether that is because its requests are cold.
func (p *Point) missing(m *Metric, side string) (why string, onlyCold bool) {
	cold, all := 0, 0
	for _, run := range p.Runs {
		all += len(run.Requests)
		for _, q := range run.Requests {
			q.Cold = false
			if m.value(&q).OK() {
				cold++
			}
		}
	}
	switch {
	case all == 0:
		return "the " + side + " has no finished requests", false
	case cold > 0:
		return fmt.Sprintf("the %s has it only of cold requests (%d of %d)", side, cold, all), true
	}
	return fmt.Sprintf("not reported by the %s (%s)", side, metric.Plural(all, "request")), false
}

// forTheWorse returns the change and its interval with the sign that makes a positive one worse.
func (r *Row) forTheWorse() (change, least, worst float64) {
	if r.higher {
		return -r.Change, -r.High, -r.Low
	}
	return r.Change, r.Low, r.High
}

// judge classifies a row. Worse and Better are changes beyond the threshold that are significant. NoWorse is an
// interval that excludes every change for the worse beyond the threshold. Everything else is Inconclusive.
func (r *Row) judge(limit float64) {
	change, _, worst := r.forTheWorse()
	switch {
	case math.IsNaN(change):
		r.Outcome = Inconclusive
	case math.IsInf(r.High, 1):
		r.Outcome, r.Why = Inconclusive, fmt.Sprintf("too few runs: a side has %d", r.Runs)
	case change > r.Threshold && r.P <= limit:
		r.Outcome, r.Why = Worse, "worse by more than the threshold"
	case -change > r.Threshold && r.P <= limit:
		r.Outcome, r.Why = Better, "better by more than the threshold"
	case worst < r.Threshold:
		r.Outcome, r.Why = NoWorse, "not worse by more than the threshold"
	case change > r.Threshold:
		r.Outcome, r.Why = Inconclusive, fmt.Sprintf("worse, but not significant: p = %.2g, above %.2g", r.P, limit)
	default:
		r.Outcome, r.Why = Inconclusive, "the interval includes changes beyond the threshold"
	}
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
	for l, picks := range base.Experts {
		if d, ok := metric.DriftOf(picks, next.Experts[l]); ok {
			out = append(out, LayerDrift{l, d.Moved, d.Expert, d.Change})
		}
	}
	return out
}
