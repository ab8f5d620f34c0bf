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

// Kind is the unit of a field.
type Kind uint8

// The kinds.
const (
	Word    Kind = iota
	Count        // a whole number
	Share        // 0..1
	Speed        // tokens/s
	Time         // s
	Elapsed      // s, rounded to whole seconds
)

// fields lists for each field its name in filters, its column title, its JSON name, its name in sentences, its kind,
// and the minimum difference between replicas that counts as an outlier.
var fields = [NumFields]struct {
	name, title, json, words string
	kind                     Kind
	least                    float64 // 0: not compared
}{
	Name:      {"replica", "replica", "replica", "replica", Word, 0},
	State:     {"state", "state", "state", "state", Word, 0},
	Model:     {"model", "model", "model", "model", Word, 0},
	Running:   {"running", "running", "running_requests", "running", Count, 4},
	Waiting:   {"waiting", "waiting", "waiting_requests", "waiting", Count, 4},
	KV:        {"kv", "KV", "kv_usage_share", "KV cache", Share, 0.1},
	Decode:    {"rate", "tok/s", "decode_tokens_per_s", "tok/s", Speed, 5},
	TTFT:      {"ttft", "TTFT p50", "ttft_p50_s", "TTFT p50", Time, 0.005},
	TTFT99:    {"ttft99", "TTFT p99", "ttft_p99_s", "TTFT p99", Time, 0},
	TPOT:      {"tpot", "TPOT p50", "tpot_p50_s", "TPOT p50", Time, 0.001},
	ITL:       {"itl", "ITL p50", "itl_p50_s", "ITL p50", Time, 0.001},
	CacheHits: {"hits", "hits", "prefix_hits_share", "prefix hits", Share, 0.1},
	Age:       {"age", "age", "age_s", "age", Elapsed, 0},
}

// String returns the field's name in filters.
func (f Field) String() string { return fields[f].name }

// Title returns the column title.
func (f Field) Title() string { return fields[f].title }

// JSON returns the field's JSON name, which ends in its unit.
func (f Field) JSON() string { return fields[f].json }

// Words returns the field's name in sentences.
func (f Field) Words() string { return fields[f].words }

// Kind returns the unit of the field.
func (f Field) Kind() Kind { return fields[f].kind }

// Compared reports whether replicas are compared by the field.
func (f Field) Compared() bool { return fields[f].least > 0 }

// Format formats a present value of the field.
func (f Field) Format(v Cell) string {
	switch f.Kind() {
	case Elapsed:
		return metric.Duration(int64(max(v.V, 1)) * 1e9)
	case Share:
		return metric.Percent(v.V)
	case Speed:
		return metric.Rate(v.V)
	case Time:
		return metric.QuantileOf(metric.Quantile{At: int64(v.V * 1e9), Edge: max(v.Edge, metric.Within)})
	}
	return metric.Count(v.V)
}

// ByName returns the field with a name, or false if absent.
func ByName(name string) (Field, bool) {
	for f := range NumFields {
		if fields[f].name == name {
			return f, true
		}
	}
	return 0, false
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

// Word returns the value of a field of kind Word.
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
	if p := s.Aggregates; p != nil {
		set(CacheHits, p.CacheHitShare())
		set(Age, event.DerivedValue(float64(max(s.Now-p.At, 0))/1e9))
	}
	kv := s.KV.Usage
	if kv.Origin == event.NotReported && !s.Polled() && s.Engine.Caps.Has(event.CapKV) { // with the first request
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
