package fleet

import (
	"cmp"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Outlier is a number of a replica that is far from those of the others with the same model; metric.Spread.Deviates says what far is.
type Outlier struct {
	Replica *Replica
	Field   Field
	Value   Cell
	Median  float64
}

// Times is how many times the median the value is; 0 where the median is 0.
func (o *Outlier) Times() float64 {
	if o.Median == 0 {
		return 0
	}
	return o.Value.V / o.Median
}

// weight is how far the value is from the median, as a factor above 1.
func (o *Outlier) weight() float64 {
	t := o.Times()
	if t > 0 && t < 1 {
		return 1 / t
	}
	return cmp.Or(t, 1e9) // from nothing, or to nothing
}

// Outliers are the numbers of connected replicas that are far from the median of their model, those of the replica that is farthest first.
func Outliers(all []*Replica) (out []Outlier) {
	models := make(map[string][]*Replica)
	for _, r := range all {
		if !r.Broken {
			models[r.Model] = append(models[r.Model], r)
		}
	}
	for _, same := range models {
		for f := range NumFields {
			if f.Compared() {
				out = append(out, outliersOf(same, f)...)
			}
		}
	}
	worst := make(map[*Replica]float64)
	for i := range out {
		worst[out[i].Replica] = max(worst[out[i].Replica], out[i].weight())
	}
	slices.SortFunc(out, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(worst[b.Replica], worst[a.Replica]), cmp.Compare(a.Replica.Name, b.Replica.Name),
			cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.Field, b.Field))
	})
	return out
}

func outliersOf(same []*Replica, f Field) (out []Outlier) {
	values := make([]float64, 0, len(same))
	for _, r := range same {
		if r.Cells[f].OK() {
			values = append(values, r.Cells[f].V)
		}
	}
	spread := metric.SpreadOf(values)
	for _, r := range same {
		if v := r.Cells[f]; v.OK() && spread.Deviates(v.V, fields[f].least) && told(v, spread.Median) {
			out = append(out, Outlier{r, f, v, spread.Median})
		}
	}
	return out
}

// told reports whether a quantile is known well enough to be on its side of the median.
func told(v Cell, median float64) bool {
	return !(v.Edge == metric.Below && v.V > median) && !(v.Edge == metric.Above && v.V < median)
}

// Median is the median of a field over the connected ones of some replicas. It is a bound where those in the middle are.
func Median(of []*Replica, f Field) Cell {
	values := make([]float64, 0, len(of))
	why := event.NotReported
	for _, r := range of {
		switch v := r.Cells[f]; {
		case r.Broken:
		case v.OK():
			values = append(values, v.V)
		default:
			why = max(why, v.Origin)
		}
	}
	if len(values) == 0 {
		return Cell{Reading: event.Absent(why)}
	}
	out := Cell{event.From(metric.SpreadOf(values).Median), metric.Within}
	for _, r := range of {
		if v := r.Cells[f]; !r.Broken && v.OK() && v.V == out.V {
			out.Edge = v.Edge
		}
	}
	return out
}

// Sum is the sum of a field over the connected ones of some replicas.
func Sum(of []*Replica, f Field) event.Reading {
	out := event.Absent(event.NotReported)
	for _, r := range of {
		if v := r.Cells[f]; !r.Broken && v.OK() {
			out = event.From(out.V + v.V)
		}
	}
	return out
}
