package recording

import "github.com/llmtop/llmtop/profiler/event"

// forwardPass is one pass of dynamo.fpm.trace.v1.
type forwardPass struct {
	Worker    string   `json:"worker_id"`
	Rank      *float64 `json:"dp_rank"`
	Counter   *float64 `json:"counter_id"`
	Wall      *float64 `json:"wall_time"` // s; 0 in the heartbeat of an idle engine
	Scheduled passLoad `json:"scheduled_requests"`
	Queued    passLoad `json:"queued_requests"`
}

// passLoad counts the requests in a pass, or those that wait for one.
type passLoad struct {
	Prefills        *float64 `json:"num_prefill_requests"`
	PrefillTokens   *float64 `json:"sum_prefill_tokens"`
	PrefillVariance *float64 `json:"var_prefill_length"`
	PrefillKV       *float64 `json:"sum_prefill_kv_tokens"`
	Decodes         *float64 `json:"num_decode_requests"`
	DecodeKV        *float64 `json:"sum_decode_kv_tokens"`
	DecodeVariance  *float64 `json:"var_decode_kv_tokens"`
}

// reading returns a number reported by the engine, absent if it is nil.
func reading(n *float64) event.Reading {
	if n == nil {
		return event.Absent(event.NotReported)
	}
	return event.ReportedValue(*n)
}

func (l *passLoad) readings() event.PassLoad {
	return event.PassLoad{
		Prefills: reading(l.Prefills), PrefillTokens: reading(l.PrefillTokens),
		PrefillVariance: reading(l.PrefillVariance), PrefillKV: reading(l.PrefillKV),
		Decodes: reading(l.Decodes), DecodeKV: reading(l.DecodeKV), DecodeVariance: reading(l.DecodeVariance),
	}
}

// pass emits a forward pass and the KV cells of its requests. A heartbeat has no pass, only the KV cells.
func (in *importer) pass(r *row) bool {
	at, ok := unixNs(r.Observed)
	p := r.Pass
	if !ok || p.Wall == nil {
		return false
	}
	in.caps |= event.CapSteps | event.CapKV
	in.sampled = in.sampled || r.Mode == "sampled"
	s := &p.Scheduled
	ms := *p.Wall * 1e3
	if took, ok := durationNs(&ms); ok && took > 0 {
		in.emit(at, event.Event{
			Kind: event.KindStep, Step: uint64(intOrZero(p.Counter)), Dur: took, N: int32(intOrZero(s.Decodes)), Prompt: int32(intOrZero(s.PrefillTokens)),
			Data: &event.Pass{
				Worker: p.Worker, Rank: reading(p.Rank), Counter: reading(p.Counter), Wall: reading(p.Wall),
				Scheduled: s.readings(), Queued: p.Queued.readings(),
			},
		})
	}
	in.emit(at, event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(intOrZero(s.PrefillKV)) + int64(intOrZero(s.DecodeKV))}})
	return true
}
