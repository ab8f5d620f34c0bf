package trace

import "github.com/llmtop/llmtop/profiler/event"

// forwardPass is one pass of dynamo.fpm.trace.v1.
type forwardPass struct {
	Worker    string   `json:"worker_id"`
	Rank      *float64 `json:"dp_rank"`
	Counter   *float64 `json:"counter_id"`
	Wall      *float64 `json:"wall_time"` // s; 0 of the heartbeat of an idle engine
	Scheduled passLoad `json:"scheduled_requests"`
	Queued    passLoad `json:"queued_requests"`
}

// passLoad are the requests in a pass, or those that wait for one.
type passLoad struct {
	Prefills        *float64 `json:"num_prefill_requests"`
	PrefillTokens   *float64 `json:"sum_prefill_tokens"`
	PrefillVariance *float64 `json:"var_prefill_length"`
	PrefillKV       *float64 `json:"sum_prefill_kv_tokens"`
	Decodes         *float64 `json:"num_decode_requests"`
	DecodeKV        *float64 `json:"sum_decode_kv_tokens"`
	DecodeVariance  *float64 `json:"var_decode_kv_tokens"`
}

// reported is a number as the engine tells it.
func reported(n *float64) event.Reading {
	if n == nil {
		return event.Absent(event.NotReported)
	}
	return event.Told(*n)
}

func (l *passLoad) readings() event.PassLoad {
	return event.PassLoad{
		Prefills: reported(l.Prefills), PrefillTokens: reported(l.PrefillTokens),
		PrefillVariance: reported(l.PrefillVariance), PrefillKV: reported(l.PrefillKV),
		Decodes: reported(l.Decodes), DecodeKV: reported(l.DecodeKV), DecodeVariance: reported(l.DecodeVariance),
	}
}

// pass emits a forward pass, and the KV cells of the requests in it. A heartbeat is a moment without any, and no pass.
func (in *importer) pass(r *row) bool {
	at, ok := unix(r.Observed)
	p := r.Pass
	if !ok || p.Wall == nil {
		return false
	}
	in.caps |= event.CapSteps | event.CapKV
	in.sampled = in.sampled || r.Mode == "sampled"
	s := &p.Scheduled
	ms := *p.Wall * 1e3
	if took, ok := duration(&ms); ok && took > 0 {
		in.emit(at, event.Event{
			Kind: event.KindStep, Step: uint64(tally(p.Counter)), Dur: took, N: int32(tally(s.Decodes)), Prompt: int32(tally(s.PrefillTokens)),
			Data: &event.Pass{
				Worker: p.Worker, Rank: reported(p.Rank), Counter: reported(p.Counter), Wall: reported(p.Wall),
				Scheduled: s.readings(), Queued: p.Queued.readings(),
			},
		})
	}
	in.emit(at, event.Event{Kind: event.KindKV, Data: &event.KV{Used: int64(tally(s.PrefillKV)) + int64(tally(s.DecodeKV))}})
	return true
}
