// Package fleet compares replicas: engines that serve the same model. It uses medians, not means, so that an outlier
// does not shift the baseline, and names the outliers.
package fleet

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Field is a column of the table of replicas.
type Field uint8

// The fields, in the order of their columns.
const (
	Name Field = iota
	State
	Model
	Running
	Waiting
	KV
	Decode
	TTFT
	TTFT99
	TPOT
	ITL
	CacheHits
	Age
	NumFields
)

// fields lists for each field its column, its JSON name, its name in sentences, and the minimum difference between
// replicas that counts as an outlier.
var fields = [NumFields]struct {
	metric.Column
	json, words string
	least       float64 // 0: not compared
}{
	Name:      {metric.Column{Name: "replica", Title: "replica", Unit: metric.Word}, "replica", "replica", 0},
	State:     {metric.Column{Name: "state", Title: "state", Unit: metric.Word}, "state", "state", 0},
	Model:     {metric.Column{Name: "model", Title: "model", Unit: metric.Word}, "model", "model", 0},
	Running:   {metric.Column{Name: "running", Title: "running"}, "running_requests", "running", 4},
	Waiting:   {metric.Column{Name: "waiting", Title: "waiting"}, "waiting_requests", "waiting", 4},
	KV:        {metric.Column{Name: "kv", Title: "KV", Unit: "1"}, "kv_usage_share", "KV cache", 0.1},
	Decode:    {metric.Column{Name: "rate", Title: "tok/s", Unit: "{token}/s"}, "decode_tokens_per_s", "tok/s", 5},
	TTFT:      {metric.Column{Name: "ttft", Title: "TTFT p50", Unit: "s"}, "ttft_p50_s", "TTFT p50", 0.005},
	TTFT99:    {metric.Column{Name: "ttft99", Title: "TTFT p99", Unit: "s"}, "ttft_p99_s", "TTFT p99", 0},
	TPOT:      {metric.Column{Name: "tpot", Title: "TPOT p50", Unit: "s"}, "tpot_p50_s", "TPOT p50", 0.001},
	ITL:       {metric.Column{Name: "itl", Title: "ITL p50", Unit: "s"}, "itl_p50_s", "ITL p50", 0.001},
	CacheHits: {metric.Column{Name: "hits", Title: "hits", Unit: "1"}, "prefix_hits_share", "prefix hits", 0.1},
	Age:       {metric.Column{Name: "age", Title: "age", Unit: "s"}, "age_s", "age", 0},
}

// Columns returns the columns of all fields.
func Columns() []metric.Column {
	out := make([]metric.Column, NumFields)
	for f := range fields {
		out[f] = fields[f].Column
	}
	return out
}

// Title returns the column title.
func (f Field) Title() string { return fields[f].Column.Title }

// JSON returns the field's JSON name, which ends in its unit.
func (f Field) JSON() string { return fields[f].json }

// Words returns the field's name in sentences.
func (f Field) Words() string { return fields[f].words }

// Unit returns the unit of the field.
func (f Field) Unit() event.Unit { return fields[f].Unit }

// Compared reports whether replicas are compared by the field.
func (f Field) Compared() bool { return fields[f].least > 0 }

// Format formats a present value of the field.
func (f Field) Format(v Cell) string {
	switch f.Unit() {
	case "1":
		return metric.Percent(v.V)
	case "{token}/s":
		return metric.Rate(v.V)
	case "s":
		if f == Age { // whole seconds
			return metric.Duration(int64(max(v.V, 1)) * 1e9)
		}
		return metric.QuantileOf(metric.Quantile{At: int64(v.V * 1e9), Edge: max(v.Edge, metric.Within)})
	}
	return metric.Count(v.V)
}

// Cell is a number of a replica. If only a bound of a quantile is known, V is the bound.
type Cell struct {
	event.Reading
	Edge metric.Edge   // Below: at most V; Above: more than V
	Mean event.Reading // of a latency in a server's buckets, exact
}

// Replica is one engine of a fleet.
type Replica struct {
	Name     string // sanitised
	State    string // as a word
	Model    string // sanitised
	Snapshot *store.Snapshot
	Broken   bool // disconnected: its numbers are the last ones received
	Cells    [NumFields]Cell
}

// Word returns the value of a field of text.
func (r *Replica) Word(f Field) string {
	return [...]string{Name: r.Name, State: r.State, Model: r.Model}[f]
}

// Measure reads all fields from a snapshot, latencies over window w.
func (r *Replica) Measure(s *store.Snapshot, w metric.Window) {
	r.Snapshot = s
	r.Cells = [NumFields]Cell{}
	set := func(f Field, v event.Reading) { r.Cells[f] = Cell{Reading: v} }
	totals := s.Totals()
	set(Running, totals.Running)
	set(Waiting, totals.Queued)
	set(CacheHits, s.Aggregates.CacheHitShare())
	if at := s.Aggregates.At; at != 0 {
		set(Age, event.DerivedValue(float64(max(s.Now-at, 0))/1e9))
	}
	kv := s.KV.Usage
	if kv.Origin == event.NotReported && s.Engine.Caps.Has(event.CapKV) { // with the first request
		kv = event.Absent(event.NotYet)
	}
	set(KV, kv)
	set(Decode, s.Throughput.Decode)
	r.Cells[TTFT] = Quantile(s, store.TTFT, w, 0.5)
	r.Cells[TTFT99] = Quantile(s, store.TTFT, w, 0.99)
	r.Cells[TPOT] = Quantile(s, store.TPOT, w, 0.5)
	r.Cells[ITL] = Quantile(s, store.ITL, w, 0.5)
}

// Quantile returns the median of a latency, or its 99th percentile.
func Quantile(s *store.Snapshot, id store.LatencyID, w metric.Window, q float64) Cell {
	d := s.Distribution(id, w)
	v := d.P50
	if q > 0.9 {
		v = d.P99
	}
	switch {
	case d.Count == 0:
		return Cell{Reading: event.Absent(d.Origin)}
	case v.Edge == metric.NoQuantile:
		return Cell{Reading: event.Absent(event.NotYet)}
	}
	out := Cell{Reading: event.DerivedValue(float64(v.At) / 1e9), Edge: v.Edge}
	if v.Edge != metric.Exact {
		out.Mean = event.DerivedValue(d.Mean / 1e9)
	}
	return out
}
