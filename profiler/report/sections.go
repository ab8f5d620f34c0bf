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
	Name    string        `json:"name"`
	Version *string       `json:"version"`
	Device  string        `json:"device"`
	Kernels *string       `json:"kernels"`
	Threads event.Reading `json:"threads"`
	Slots   event.Reading `json:"slots"`
	Pace    event.Reading `json:"pace_tokens_per_s"` // null: unlimited
	State   string        `json:"state"`
	Reason  string        `json:"reason"`
	// LastLog holds the last log lines of a failed engine, the oldest first.
	LastLog []string `json:"last_log,omitempty"`
	// Connection is the state of the connection to an attached engine at the end; null if llmtop runs the engine
	// itself.
	Connection *Connection `json:"connection,omitempty"`
}

// Connection is the connection to an attached engine.
type Connection struct {
	State    string        `json:"state"`
	Since    event.Reading `json:"since_s"` // when State last changed, since the start of the session; null: at its start, or before
	Why      string        `json:"why"`     // why it is not connected
	Restarts int           `json:"restarts"`
	// What was lost on the way: events neither received nor counted as dropped, negative if more came than were sent, and
	// lines that could not be read.
	Missed    int64  `json:"missed_events"`
	Malformed uint64 `json:"malformed_lines"`
}

// maxLog is how many lines EngineInfo.LastLog has at most.
const maxLog = 20

// Model is the loaded model. Null is unknown.
type Model struct {
	Name         string        `json:"name"`
	Path         *string       `json:"path"`
	Architecture *string       `json:"architecture"`
	Quantisation *string       `json:"quantisation"`
	Parameters   event.Reading `json:"parameters"`
	Active       event.Reading `json:"active_parameters"`
	Bytes        event.Reading `json:"size_bytes"`
	Layers       event.Reading `json:"layers"`
	Width        event.Reading `json:"width"`
	Heads        event.Reading `json:"heads"`
	KVHeads      event.Reading `json:"kv_heads"`
	HeadDim      event.Reading `json:"head_dim"`
	Vocab        event.Reading `json:"vocab"`
	Experts      event.Reading `json:"experts"` // 0: dense
	ExpertsUsed  event.Reading `json:"experts_used"`
	FeedForward  event.Reading `json:"feed_forward"`
	Context      event.Reading `json:"context"`
	TrainContext event.Reading `json:"train_context"`
	KVBytes      event.Reading `json:"kv_bytes_per_token"`
	WeightBytes  event.Reading `json:"weight_bytes_per_token"`
	Load         []LoadStage   `json:"load"`
}

// LoadStage is one stage of the model load.
type LoadStage struct {
	Stage string        `json:"stage"`
	Time  event.Reading `json:"elapsed_s"`
	stage event.Stage
	ns    int64
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

// KV is the last report of the KV cache, in cells; a cell holds one token.
type KV struct {
	Used      event.Reading     `json:"used_cells"`
	Total     event.Reading     `json:"total_cells"`
	Usage     event.Reading     `json:"usage"`
	Residency *Distribution     `json:"residency_s"`
	Absent    map[string]string `json:"absent,omitempty"`
	Origin    map[string]string `json:"origin,omitempty"` // origins of the numbers, by name
}

func engine(s *store.Snapshot) EngineInfo {
	e := &s.Engine
	out := EngineInfo{
		Name: e.Name, Version: optionalText(e.Version), Device: e.Device.Name, Kernels: optionalText(e.Device.Kernels),
		Threads: optionalNumber(e.Device.Threads), Slots: optionalNumber(e.Slots), State: e.State.String(), Reason: e.Reason,
	}
	if e.Pace > 0 {
		out.Pace = event.MeasuredValue(e.Pace)
	}
	if e.State == event.EngineFailed {
		for _, line := range s.Log[max(len(s.Log)-maxLog, 0):] {
			out.LastLog = append(out.LastLog, line.Text)
		}
	}
	if r := &e.Remote; r.Link != event.LinkNone {
		out.Connection = &Connection{State: r.Link.String(), Why: r.Reason, Restarts: r.Restarts, Missed: r.Missed, Malformed: r.Malformed}
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
		out.Experts, out.ExpertsUsed = event.MeasuredValue(float64(m.Experts)), event.MeasuredValue(float64(m.ExpertsUsed))
	}
	for _, span := range s.Load {
		out.Load = append(out.Load, LoadStage{span.Label(), nanos(int64(span.Dur())), span.Stage, int64(span.Dur())})
	}
	return out
}

// undistributed returns why there is no distribution of a latency that single requests have, by its JSON name.
func undistributed(s *store.Snapshot) map[string]string {
	if s.Counts.Polled == 0 || s.Latency.Of[store.TPOT][session].Count > 0 {
		return nil
	}
	return map[string]string{store.Latencies[store.TPOT].JSON: store.MissedByPolls}
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
func usedOfTotal(used, total event.Reading, f func(float64) string) string {
	switch {
	case used.OK() && total.OK():
		return f(used.V) + " of " + f(total.V)
	case total.OK():
		return used.Absence() + " (total " + f(total.V) + ")"
	}
	return format(used, f)
}

func kv(s *store.Snapshot) KV {
	k := &s.KV
	out := KV{Usage: k.Usage, Residency: distribution(k.Residency)}
	switch {
	case k.Derived:
		out.Used = event.DerivedValue(float64(k.Used))
	case k.Used > 0 || k.Total > 0: // some know only the cells in use
		out.Used, out.Total = event.MeasuredValue(float64(k.Used)), optionalNumber(k.Total)
	}
	if r := &s.Aggregates; r.KVUsed.OK() || r.KVTotal.OK() {
		out.Used, out.Total = r.KVUsed, r.KVTotal
	}
	explainNumbers(&out)
	return out
}
