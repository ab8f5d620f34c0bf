package fleet

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Outlier is a number of a replica that is far from those of other replicas with the same model, see
// metric.Spread.Deviates.
type Outlier struct {
	Replica *Replica
	Field   Field
	Value   Cell
	Median  float64
	Mean    bool // Value and Median are of means, see byMeans
}

// Words returns the name of the compared number in sentences.
func (o *Outlier) Words() string { return o.named(o.Field.Words()) }

// JSON returns the name of the compared number in documents.
func (o *Outlier) JSON() string { return o.named(o.Field.JSON()) }

func (o *Outlier) named(name string) string {
	if o.Mean {
		return strings.Replace(name, "p50", "mean", 1)
	}
	return name
}

// Times returns the value as a multiple of the median, 0 if the median is 0.
func (o *Outlier) Times() float64 {
	if o.Median == 0 {
		return 0
	}
	return o.Value.V / o.Median
}

// weight returns how far the value is from the median, as a factor above 1.
func (o *Outlier) weight() float64 {
	t := o.Times()
	if t > 0 && t < 1 {
		return 1 / t
	}
	return cmp.Or(t, 1e9) // value or median is 0
}

// Outliers returns the outliers among connected replicas, compared by model. The replica that is farthest from its
// median comes first.
func Outliers(all []*Replica) (out []Outlier) {
	for f, group := range compared(all) {
		out = append(out, fieldOutliers(group, f)...)
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

// compared yields the connected replicas of each model with each field by which they are compared.
func compared(all []*Replica) iter.Seq2[Field, []*Replica] {
	models := make(map[string][]*Replica)
	for _, r := range all {
		if !r.Broken {
			models[r.Model] = append(models[r.Model], r)
		}
	}
	return func(yield func(Field, []*Replica) bool) {
		for _, model := range slices.Sorted(maps.Keys(models)) {
			for f := range NumFields {
				if f.Compared() && !yield(f, models[model]) {
					return
				}
			}
		}
	}
}

// Difference is a number in which replicas of one model are as far apart as an outlier is from a median, though none is
// an outlier: one of two, or half of them.
type Difference struct {
	Low, High Outlier // the replicas with the lowest and the highest value; without a median
}

// Differences returns the largest difference of each field and model that has no outlier. common reports whether
// two replicas of a model have a number in common: without that, nothing says that they are alike.
func Differences(all []*Replica, outliers []Outlier) (out []Difference, common bool) {
	for f, group := range compared(all) {
		means, low, high := byMeans(group, f), (*Replica)(nil), (*Replica)(nil)
		known := 0
		for _, r := range group {
			v := r.compared(f, means)
			if !v.OK() {
				continue
			}
			known++
			if v.Edge != metric.Above && (low == nil || v.V < low.compared(f, means).V) {
				low = r
			}
			if v.Edge != metric.Below && (high == nil || v.V > high.compared(f, means).V) {
				high = r
			}
		}
		common = common || known > 1
		if low == nil || high == nil || slices.ContainsFunc(outliers, func(o Outlier) bool { return o.Field == f && o.Replica.Model == low.Model }) {
			continue
		}
		from, to := low.compared(f, means), high.compared(f, means)
		if to.V-from.V >= fields[f].least && to.V >= metric.FarFromMedian*from.V {
			out = append(out, Difference{Outlier{Replica: low, Field: f, Value: from, Mean: means}, Outlier{Replica: high, Field: f, Value: to, Mean: means}})
		}
	}
	return out, common
}

// compared returns the value by which a replica is compared: of a latency its mean if means is set.
func (r *Replica) compared(f Field, means bool) Cell {
	if means {
		return Cell{Reading: r.Cells[f].Mean}
	}
	return r.Cells[f]
}

// fieldOutliers returns the outliers in one field among replicas of one model.
func fieldOutliers(group []*Replica, f Field) (out []Outlier) {
	means := byMeans(group, f)
	values := make([]float64, 0, len(group))
	for _, r := range group {
		if v := r.compared(f, means); v.OK() {
			values = append(values, v.V)
		}
	}
	spread := metric.SpreadOf(values)
	for _, r := range group {
		if v := r.compared(f, means); v.OK() && spread.Deviates(v.V, fields[f].least) && boundHolds(v, spread.Median) {
			out = append(out, Outlier{r, f, v, spread.Median, means})
		}
	}
	return out
}

// byMeans reports whether replicas are compared by the means of a latency, which are exact, rather than by percentiles:
// those of servers are interpolated within wide buckets.
func byMeans(group []*Replica, f Field) (all bool) {
	for _, r := range group {
		if c := r.Cells[f]; c.OK() {
			if !c.Mean.OK() {
				return false
			}
			all = true
		}
	}
	return all
}

// boundHolds reports whether a value, even if only a bound of it is known, is on its side of the median.
func boundHolds(v Cell, median float64) bool {
	return !(v.Edge == metric.Below && v.V > median) && !(v.Edge == metric.Above && v.V < median)
}

// Median returns the median of a field over connected replicas. It is a bound if the middle value is one.
func Median(replicas []*Replica, f Field) Cell {
	values := make([]float64, 0, len(replicas))
	why := event.NotReported
	for _, r := range replicas {
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
	out := Cell{Reading: event.DerivedValue(metric.MedianOf(values)), Edge: metric.Within}
	for _, r := range replicas {
		if v := r.Cells[f]; !r.Broken && v.OK() && v.V == out.V {
			out.Edge = v.Edge
		}
	}
	return out
}

// Sum returns the sum of a field over connected replicas.
func Sum(replicas []*Replica, f Field) event.Reading {
	var out event.Reading
	for _, r := range replicas {
		if !r.Broken {
			out = out.Plus(r.Cells[f].Reading)
		}
	}
	return out
}
