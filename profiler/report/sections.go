package report

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

const session = metric.Session

// Engine is what ran the model.
type Engine struct {
	Name    string  `json:"name"`
	Version *string `json:"version"`
	Device  string  `json:"device"`
	Kernels *string `json:"kernels"`
	Threads Number  `json:"threads"`
	Slots   Number  `json:"slots"`
	Pace    Number  `json:"pace_tokens_per_s"` // null: flat out
	State   string  `json:"state"`
	Reason  string  `json:"reason"`
	// LastLog are the last lines of the log of an engine that has failed, the oldest first.
	LastLog []string `json:"last_log,omitempty"`
	// Connection is how an engine elsewhere was connected at the end; null for one that llmtop runs itself.
	Connection *Connection `json:"connection,omitempty"`
}

// Connection is that to an engine elsewhere.
type Connection struct {
	State    string `json:"state"`
	Since    Number `json:"since_s"` // when State became what it is, since the session began; null: then, or before
	Why      string `json:"why"`     // it is not connected
	Restarts int    `json:"restarts"`
}

// maxLog bounds Engine.LastLog.
const maxLog = 20

// Model is what was loaded. Null is unknown.
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

// Percentiles are the distributions of the whole session; null where nothing was recorded.
type Percentiles struct {
	TTFT     *Distribution `json:"ttft_s"` // warm
	ColdTTFT *Distribution `json:"cold_ttft_s"`
	ITL      *Distribution `json:"itl_s"`
	TPOT     *Distribution `json:"tpot_s"`
	STIL     *Distribution `json:"stil_s"`
	E2EL     *Distribution `json:"e2el_s"`
}

// Distribution describes times in s. Percentiles are off by at most 1/64 of their value.
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

// Throughput are rates; prefill, decode and busy share over the last ten seconds.
type Throughput struct {
	Prefill       Number            `json:"prefill_tokens_per_s"`
	Decode        Number            `json:"decode_tokens_per_s"`
	TTPS          Number            `json:"ttps"`
	SessionTTPS   Number            `json:"session_ttps"`
	Busy          Number            `json:"busy_share"`
	Bandwidth     Number            `json:"bandwidth_bytes_per_s"`
	CopyBandwidth Number            `json:"copy_bandwidth_bytes_per_s"`
	Goodput       Number            `json:"goodput_requests_per_s"`
	Absent        map[string]string `json:"absent,omitempty"`
	Origin        map[string]string `json:"origin,omitempty"` // of a server's numbers, by their names
}

// KV is the KV cache as it was last reported, in cells; one holds one token.
type KV struct {
	Used      Number            `json:"used_cells"`
	Total     Number            `json:"total_cells"`
	Usage     Number            `json:"usage"`
	Residency *Distribution     `json:"residency_s"`
	Absent    map[string]string `json:"absent,omitempty"`
	Origin    map[string]string `json:"origin,omitempty"` // of a server's numbers, by their names
}

func engine(s *store.Snapshot) Engine {
	e := &s.Engine
	out := Engine{
		Name: e.Name, Version: text(e.Version), Device: e.Device.Name, Kernels: text(e.Device.Kernels),
		Threads: known(e.Device.Threads), Slots: known(e.Slots), State: e.State.String(), Reason: e.Reason,
	}
	if e.Pace > 0 {
		out.Pace = Number(event.Of(e.Pace))
	}
	if e.State == event.EngineFailed {
		for _, line := range s.Log[max(len(s.Log)-maxLog, 0):] {
			out.LastLog = append(out.LastLog, line.Text)
		}
	}
	if r := &e.Remote; r.Link != event.LinkNone {
		out.Connection = &Connection{State: r.Link.String(), Why: r.Why, Restarts: r.Restarts}
		if r.Since > s.Started && !s.Unreached() { // else there was nothing before
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
		Name: m.Name, Path: text(m.Path), Architecture: text(m.Architecture), Quantisation: text(m.Quantisation),
		Parameters: known(m.Parameters), Active: known(m.Active), Bytes: known(m.Bytes),
		Layers: known(m.Layers), Width: known(m.Width), Heads: known(m.Heads), KVHeads: known(m.KVHeads),
		HeadDim: known(m.HeadDim), Vocab: known(m.Vocab),
		FeedForward: known(m.FeedForward), Context: known(m.Context), TrainContext: known(m.TrainContext),
		KVBytes: known(m.KVBytes), WeightBytes: known(m.WeightBytes), Load: []LoadStage{},
	}
	if m.Architecture != "" && !s.InSum() || m.Experts > 0 { // of others it is not known whether they have any
		out.Experts, out.ExpertsUsed = Number(event.Of(float64(m.Experts))), Number(event.Of(float64(m.ExpertsUsed)))
	}
	for _, span := range s.Load {
		out.Load = append(out.Load, LoadStage{span.Label(), nanos(int64(span.Dur())), span.Stage, int64(span.Dur())})
	}
	return out
}

func percentiles(l *store.Latency) Percentiles {
	return Percentiles{
		TTFT: distribution(l.TTFT[session]), ColdTTFT: distribution(l.ColdTTFT[session]), ITL: distribution(l.ITL[session]),
		TPOT: distribution(l.TPOT[session]), STIL: distribution(l.STIL[session]), E2EL: distribution(l.E2EL[session]),
	}
}

// distribution is a summary in s, nil if nothing was recorded. One value has no standard deviation.
func distribution(s metric.Summary) *Distribution {
	if s.Count == 0 {
		return nil
	}
	d := &Distribution{
		Count: s.Count, Mean: Number(event.From(s.Mean / 1e9)), Min: nanos(s.Min), Max: nanos(s.Max),
		P50: nanos(s.P50), P90: nanos(s.P90), P95: nanos(s.P95), P99: nanos(s.P99),
	}
	if s.Count > 1 {
		d.StdDev = Number(event.From(s.StdDev / 1e9))
	}
	return d
}

func throughput(s *store.Snapshot) Throughput {
	t := &s.Throughput
	out := Throughput{
		Prefill: Number(t.Prefill), Decode: Number(t.Decode), TTPS: Number(t.TTPS), SessionTTPS: Number(t.SessionTTPS),
		Busy: Number(t.BusyShare), Bandwidth: Number(t.Bandwidth), CopyBandwidth: Number(t.CopyBandwidth),
		Goodput: Number(s.Latency.Goodput),
	}
	out.Absent = absences(out)
	if s.InSum() {
		out.Origin = origins(out)
	}
	return out
}

func kv(s *store.Snapshot) KV {
	k := &s.KV
	out := KV{Usage: Number(k.Usage), Residency: distribution(k.Residency)}
	if k.Total > 0 {
		out.Used, out.Total = Number(event.Of(float64(k.Used))), known(k.Total)
	}
	if r := s.Reported; r != nil && out.Total.OK() {
		out.Used, out.Total = Number(r.KVUsed), Number(r.KVTotal)
	}
	out.Absent = absences(out)
	if s.InSum() {
		out.Origin = origins(out)
	}
	return out
}
