// Package fleet compares replicas: many engines that do the same. It knows medians and not means, so that one replica that is far from the others does not
// hide itself, and names it.
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
	CacheHits
	Age
	NumFields
)

// Kind is what the values of a field are.
type Kind uint8

// The kinds.
const (
	Word  Kind = iota
	Count      // a whole number
	Share      // 0..1
	Speed      // tokens/s
	Time       // s
	Past       // s, whole ones
)

// fields says of each field how it is called in filters, above its column, in JSON and in sentences, and by how much two replicas must differ at least
// for it to matter.
var fields = [NumFields]struct {
	name, title, json, words string
	kind                     Kind
	least                    float64 // 0: replicas are not compared by it
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
	CacheHits: {"hits", "hits", "prefix_hits_share", "prefix hits", Share, 0.1},
	Age:       {"age", "age", "age_s", "age", Past, 0},
}

// String is the field's name in filters.
func (f Field) String() string { return fields[f].name }

// Title is the head of the field's column.
func (f Field) Title() string { return fields[f].title }

// JSON is the field's name in JSON, which ends in its unit.
func (f Field) JSON() string { return fields[f].json }

// Words are what the field is called in a sentence.
func (f Field) Words() string { return fields[f].words }

// Kind is what the field's values are.
func (f Field) Kind() Kind { return fields[f].kind }

// Compared reports whether replicas are compared by the field.
func (f Field) Compared() bool { return fields[f].least > 0 }

// Format writes a number of the field that is there.
func (f Field) Format(v Cell) string {
	switch f.Kind() {
	case Past:
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

// ByName finds a field; false if there is none of that name.
func ByName(name string) (Field, bool) {
	for f := range NumFields {
		if fields[f].name == name {
			return f, true
		}
	}
	return 0, false
}

// Cell is a number of a replica. Of a quantile of which only a bound is known, V is the bound.
type Cell struct {
	event.Reading
	Edge metric.Edge // Below: it is less than V; Above: it is more
}

// Replica is one of a fleet.
type Replica struct {
	Name     string // sanitised
	State    string // a word
	Model    string // sanitised
	Snapshot *store.Snapshot
	Broken   bool // it is not connected: its numbers are from before that
	Cells    [NumFields]Cell
}

// Word is the value of a field that is a word.
func (r *Replica) Word(f Field) string {
	return [...]string{Name: r.Name, State: r.State, Model: r.Model}[f]
}

// Measure takes the numbers of a snapshot, latencies over a window.
func (r *Replica) Measure(s *store.Snapshot, w metric.Window) {
	r.Snapshot = s
	r.Cells = [NumFields]Cell{}
	set := func(f Field, v event.Reading) { r.Cells[f] = Cell{Reading: v} }
	if !s.Engine.Caps.Has(event.CapReports) { // of others nothing is known before their first report
		set(Running, event.From(float64(s.Throughput.Running)))
		set(Waiting, event.From(float64(s.Throughput.Queued)))
	}
	set(KV, s.KV.Usage)
	set(Decode, s.Throughput.Decode)
	if p := s.Reported; p != nil {
		set(Running, p.Running)
		set(Waiting, p.Waiting)
		set(CacheHits, p.CacheHits)
		set(Age, event.From(float64(max(s.Now-p.At, 0))/1e9))
	}
	r.Cells[TTFT] = quantile(s, &s.Latency.TTFT[w], event.TimesTTFT, w, 0.5)
	r.Cells[TTFT99] = quantile(s, &s.Latency.TTFT[w], event.TimesTTFT, w, 0.99)
	r.Cells[TPOT] = quantile(s, &s.Latency.TPOT[w], event.TimesTPOT, w, 0.5)
	if r.Cells[TPOT].Origin == event.NotReported { // engines that count no TPOT count the gaps between tokens
		r.Cells[TPOT] = quantile(s, &s.Latency.ITL[w], event.TimesITL, w, 0.5)
	}
}

// quantile is a latency as requests have it, or as the engine reports it.
func quantile(s *store.Snapshot, own *metric.Summary, name string, w metric.Window, q float64) Cell {
	if own.Count > 0 {
		v := own.P50
		if q > 0.9 {
			v = own.P99
		}
		return Cell{Reading: event.From(float64(v) / 1e9)}
	}
	if s.Reported == nil {
		return Cell{Reading: event.Absent(event.NotYet)}
	}
	sum := s.Reported.Over(name, w)
	if sum == nil {
		return Cell{Reading: event.Absent(event.NotReported)}
	}
	of := sum.P50
	if q > 0.9 {
		of = sum.P99
	}
	if of.Edge == metric.NoQuantile {
		return Cell{Reading: event.Absent(event.NotYet)}
	}
	return Cell{event.From(float64(of.At) / 1e9), of.Edge}
}
