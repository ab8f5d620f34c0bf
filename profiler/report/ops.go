package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Ops holds the times of the operations in the timed forward passes, and the cost of timing.
type Ops struct {
	Passes   int64             `json:"passes"`         // forward passes in Times
	Slowdown event.Reading     `json:"slowdown_ratio"` // duration of a timed pass / of an untimed one, both of one token
	Absent   map[string]string `json:"absent,omitempty"`
	Times    []OpTime          `json:"times"` // longest first
}

// OpTime is the time of one kind of operation in one layer, summed over the passes.
type OpTime struct {
	Op    string        `json:"op"`    // name in the engine
	Layer *int          `json:"layer"` // null: outside all layers
	Calls int64         `json:"calls"`
	Time  event.Reading `json:"elapsed_s"`
}

// operations converts the operations of a snapshot; nil if none were timed.
func operations(from *event.Ops) *Ops {
	if from == nil {
		return nil
	}
	out := &Ops{Passes: from.Passes, Slowdown: from.Slowdown, Times: []OpTime{}}
	explainNumbers(out)
	for _, t := range from.Times {
		row := OpTime{Op: t.Op, Calls: t.Calls, Time: event.MeasuredValue(float64(t.Dur) / 1e9)}
		if layer := t.Layer; layer >= 0 {
			row.Layer = &layer
		}
		out.Times = append(out.Times, row)
	}
	return out
}

// shownOps is how many kinds of operations have their own column: those with the most time.
const shownOps = 6

// opsSection returns a table of layers by kinds of operations, with the times per pass. The last row is the sum.
func opsSection(r *Report) section {
	s := section{title: "Time per operation and forward pass", left: 1}
	if r.Ops == nil || r.Ops.Passes == 0 {
		return s
	}
	const outside, all = -1, 1 << 30
	sums, kinds := map[int]map[string]float64{}, map[string]float64{}
	for _, t := range r.Ops.Times {
		layer := outside
		if t.Layer != nil {
			layer = *t.Layer
		}
		for _, row := range []int{layer, all} {
			if sums[row] == nil {
				sums[row] = map[string]float64{}
			}
			sums[row][t.Op] += t.Time.V
		}
		kinds[t.Op] += t.Time.V
	}
	columns := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b)) })
	columns = columns[:min(len(columns), shownOps)]
	s.header = append(append([]string{"layer"}, columns...), "others", "all")
	for _, layer := range slices.Sorted(maps.Keys(sums)) {
		s.rows = append(s.rows, opsRow(r, opsRowName(layer, outside, all), sums[layer], columns))
	}
	s.words = []string{
		fmt.Sprintf("%d forward passes were timed. Timing slows a pass down: timed / untimed duration %s.",
			r.Ops.Passes, format(r.Ops.Slowdown, metric.Rate)),
	}
	return s
}

func opsRowName(layer, outside, all int) string {
	switch layer {
	case outside:
		return "outside"
	case all:
		return "all"
	}
	return fmt.Sprint(layer)
}

// opsRow returns one row: the named kinds, all others, and the sum.
func opsRow(r *Report, name string, times map[string]float64, columns []string) []string {
	row, others := []string{name}, 0.0
	for op, v := range times {
		if !slices.Contains(columns, op) {
			others += v
		}
	}
	sum := others
	for _, op := range columns {
		sum += times[op]
		row = append(row, perPass(r, times[op]))
	}
	return append(row, perPass(r, others), perPass(r, sum))
}

// perPass formats a sum of s over all passes as the mean per pass; "-" if no operation ran.
func perPass(r *Report, v float64) string {
	if v == 0 {
		return "-"
	}
	return metric.Seconds(v / float64(r.Ops.Passes))
}
