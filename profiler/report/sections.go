package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

const session = metric.Session

// EngineInfo is the engine that ran the model.
type EngineInfo struct {
	Name    string  `json:"name"`
	Version *string `json:"version"`
	Device  string  `json:"device"`
	Kernels *string `json:"kernels"`
	Threads Number  `json:"threads"`
	Slots   Number  `json:"slots"`
	Pace    Number  `json:"pace_tokens_per_s"` // null: unlimited
	State   string  `json:"state"`
	Reason  string  `json:"reason"`
	// LastLog holds the last log lines of a failed engine, the oldest first.
	LastLog []string `json:"last_log,omitempty"`
	// Connection is the state of the connection to an attached engine at the end; null if llmtop runs the engine
	// itself.
	Connection *Connection `json:"connection,omitempty"`
}

// Connection is the connection to an attached engine.
type Connection struct {
	State    string `json:"state"`
	Since    Number `json:"since_s"` // when State last changed, since the start of the session; null: at its start, or before
	Why      string `json:"why"`     // why it is not connected
	Restarts int    `json:"restarts"`
}

// maxLog is how many lines EngineInfo.LastLog has at most.
const maxLog = 20

// Model is the loaded model. Null is unknown.
type Model struct {
	Name         string      `json:"name"`
	Path         *string     `json:"path"`
	Architecture *string     `json:"architecture"`
	Quantisation *string     `json:"quantisation"`
	Parameters   Number      `json:"parameters"`
	Active       Number      `json:"active_parameters"`
	Bytes        Number      `json:"size_bytes"`
	Layers       Number      `json:"layers"`
	Width        Number      `json:"width"`
	Heads        Number      `json:"heads"`
	KVHeads      Number      `json:"kv_heads"`
	HeadDim      Number      `json:"head_dim"`
	Vocab        Number      `json:"vocab"`
	Experts      Number      `json:"experts"` // 0: dense
	ExpertsUsed  Number      `json:"experts_used"`
	FeedForward  Number      `json:"feed_forward"`
	Context      Number      `json:"context"`
	TrainContext Number      `json:"train_context"`
	KVBytes      Number      `json:"kv_bytes_per_token"`
	WeightBytes  Number      `json:"weight_bytes_per_token"`
	Load         []LoadStage `json:"load"`
}

// LoadStage is one stage of the model load.
type LoadStage struct {
	Stage string `json:"stage"`
	Time  Number `json:"elapsed_s"`
	stage event.Stage
	ns    int64
}

// Percentiles are the distributions of the latencies over the whole session; nil if nothing was recorded.
type Percentiles [store.NumLatencies]*Distribution

// MarshalJSON writes an object with the JSON names of the catalogue.
func (p Percentiles) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for id, d := range p {
		v, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		out = append(out, `"`+store.Latencies[id].JSON+`":`...)
		out = append(append(out, v...), ',')
	}
	out[len(out)-1] = '}'
	return out, nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Percentiles) UnmarshalJSON(src []byte) error {
	return eachMember(src, func(name string, v []byte) error {
		for id := range p {
			if store.Latencies[id].JSON == name {
				return json.Unmarshal(v, &p[id])
			}
		}
		return nil
	})
}

// eachMember calls f with each member of an object, in order; never for null.
func eachMember(src []byte, f func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(src))
	opening, err := d.Token()
	if err != nil || opening == nil {
		return err
	}
	if opening != json.Delim('{') {
		return errors.New("want an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}
		if err := f(name.(string), v); err != nil { // object keys are strings
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Distribution describes times in s. Percentiles are accurate to 1/64 of their value.
type Distribution struct {
	Count  uint64 `json:"count"`
	Mean   Number `json:"mean"`
	StdDev Number `json:"stddev"`
	Min    Number `json:"min"`
	P50    Number `json:"p50"`
	P90    Number `json:"p90"`
	P95    Number `json:"p95"`
	P99    Number `json:"p99"`
	Max    Number `json:"max"`
}

// Throughput are rates; prefill, decode and busy share are of the last 10 s.
type Throughput struct {
	Prefill       Number            `json:"prefill_tokens_per_s"`
	Decode        Number            `json:"decode_tokens_per_s"`
	TTPS          Number            `json:"ttps"`
	SessionTTPS   Number            `json:"session_ttps"`
	Busy          Number            `json:"busy_share"`
	Bandwidth     Number            `json:"bandwidth_bytes_per_s"`
	PassExperts   Number            `json:"experts_per_pass"`
	ReadBandwidth Number            `json:"read_bandwidth_bytes_per_s"`
	ReadShare     Number            `json:"read_share"`
	Requests      Number            `json:"requests_per_s"`
	Goodput       Number            `json:"goodput_requests_per_s"`
	Absent        map[string]string `json:"absent,omitempty"`
	Origin        map[string]string `json:"origin,omitempty"` // origins of a server's numbers, by name
}

// KV is the last report of the KV cache, in cells; a cell holds one token.
type KV struct {
	Used      Number            `json:"used_cells"`
	Total     Number            `json:"total_cells"`
	Usage     Number            `json:"usage"`
	Residency *Distribution     `json:"residency_s"`
	Absent    map[string]string `json:"absent,omitempty"`
	Origin    map[string]string `json:"origin,omitempty"` // origins of a server's numbers, by name
}

func engine(s *store.Snapshot) EngineInfo {
	e := &s.Engine
	out := EngineInfo{
		Name: e.Name, Version: optionalText(e.Version), Device: e.Device.Name, Kernels: optionalText(e.Device.Kernels),
		Threads: optionalNumber(e.Device.Threads), Slots: optionalNumber(e.Slots), State: e.State.String(), Reason: e.Reason,
	}
	if e.Pace > 0 {
		out.Pace = Number(event.MeasuredValue(e.Pace))
	}
	if e.State == event.EngineFailed {
		for _, line := range s.Log[max(len(s.Log)-maxLog, 0):] {
			out.LastLog = append(out.LastLog, line.Text)
		}
	}
	if r := &e.Remote; r.Link != event.LinkNone {
		out.Connection = &Connection{State: r.Link.String(), Why: r.Reason, Restarts: r.Restarts}
		if r.Since > s.Started && !s.NeverReached() { // otherwise it was never connected
			out.Connection.Since = nanos(int64(r.Since - s.Started))
		}
	}
	return out
}

func model(s *store.Snapshot) *Model {
	m := &s.Model
	if m.Name == "" && m.Architecture == "" {
		return nil
	}
	out := &Model{
		Name: m.Name, Path: optionalText(m.Path), Architecture: optionalText(m.Architecture), Quantisation: optionalText(m.Quantisation),
		Parameters: optionalNumber(m.Parameters), Active: optionalNumber(m.Active), Bytes: optionalNumber(m.Bytes),
		Layers: optionalNumber(m.Layers), Width: optionalNumber(m.Width), Heads: optionalNumber(m.Heads), KVHeads: optionalNumber(m.KVHeads),
		HeadDim: optionalNumber(m.HeadDim), Vocab: optionalNumber(m.Vocab),
		FeedForward: optionalNumber(m.FeedForward), Context: optionalNumber(m.Context), TrainContext: optionalNumber(m.TrainContext),
		KVBytes: optionalNumber(m.KVBytes), WeightBytes: optionalNumber(m.WeightBytes), Load: []LoadStage{},
	}
	if s.Dense() || m.Experts > 0 { // otherwise it is unknown whether the model has experts
		out.Experts, out.ExpertsUsed = Number(event.MeasuredValue(float64(m.Experts))), Number(event.MeasuredValue(float64(m.ExpertsUsed)))
	}
	for _, span := range s.Load {
		out.Load = append(out.Load, LoadStage{span.Label(), nanos(int64(span.Dur())), span.Stage, int64(span.Dur())})
	}
	return out
}

func percentiles(l *store.Latency) (out Percentiles) {
	for id := range out {
		out[id] = distribution(store.Latencies[id].In(l)[session])
	}
	return out
}

// undistributed returns why there is no distribution of a latency that single requests have, by its JSON name.
func undistributed(s *store.Snapshot) map[string]string {
	if s.Counts.Polled == 0 || s.Latency.TPOT[session].Count > 0 {
		return nil
	}
	return map[string]string{store.Latencies[store.TPOT].JSON: store.MissedByPolls}
}

// distribution converts a summary to s; nil if nothing was recorded. A single value has no standard deviation.
func distribution(s metric.Summary) *Distribution {
	if s.Count == 0 {
		return nil
	}
	d := &Distribution{
		Count: s.Count, Mean: Number(event.DerivedValue(s.Mean / 1e9)), Min: nanos(s.Min), Max: nanos(s.Max),
		P50: nanos(s.P50), P90: nanos(s.P90), P95: nanos(s.P95), P99: nanos(s.P99),
	}
	if s.Count > 1 {
		d.StdDev = Number(event.DerivedValue(s.StdDev / 1e9))
	}
	return d
}

func throughput(s *store.Snapshot) Throughput {
	t := &s.Throughput
	out := Throughput{
		Prefill: Number(t.Prefill), Decode: Number(t.Decode), TTPS: Number(t.TTPS), SessionTTPS: Number(t.SessionTTPS),
		Busy: Number(t.BusyShare), Bandwidth: Number(t.Bandwidth), PassExperts: Number(t.PassExperts), ReadBandwidth: Number(t.ReadBandwidth), ReadShare: Number(t.ReadShare),
		Requests: Number(t.Requests), Goodput: Number(s.Latency.Goodput),
	}
	out.Absent, out.Origin = absences(out), originsOf(s, out)
	return out
}

// describe returns the use of the cache and the median residency as text.
func (k *KV) describe() string {
	cells := usedOfTotal(k.Used, k.Total, metric.Count)
	if k.Used.OK() {
		cells += " cells in use"
	}
	return cells + "; residency of a request: " + median(k.Residency) + " (p50)"
}

// usedOfTotal formats two readings as "1 of 2". If one is absent, it returns the other one, or the reason once.
func usedOfTotal(used, total Number, f func(float64) string) string {
	switch {
	case used.OK() && total.OK():
		return f(used.V) + " of " + f(total.V)
	case total.OK():
		return used.absence() + " (total " + f(total.V) + ")"
	}
	return format(used, f)
}

func kv(s *store.Snapshot) KV {
	k := &s.KV
	out := KV{Usage: Number(k.Usage), Residency: distribution(k.Residency)}
	if k.Used > 0 || k.Total > 0 { // some know only the cells in use
		out.Used, out.Total = Number(event.MeasuredValue(float64(k.Used))), optionalNumber(k.Total)
	}
	if r := s.Aggregates; r != nil && out.Total.OK() {
		out.Used, out.Total = Number(r.KVUsed), Number(r.KVTotal)
	}
	out.Absent, out.Origin = absences(out), originsOf(s, out)
	return out
}
