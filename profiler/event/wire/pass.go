package wire

import "github.com/llmtop/llmtop/profiler/event"

// passFields are the forward-pass metrics of SGLang and Dynamo, by their names there.
var passFields = fields[event.Pass]{
	member("worker_id", texts, func(p *event.Pass) *string { return &p.Worker }),
	member("dp_rank", bareReadings, func(p *event.Pass) *event.Reading { return &p.Rank }),
	member("counter_id", bareReadings, func(p *event.Pass) *event.Reading { return &p.Counter }),
	member("wall_time", bareReadings, func(p *event.Pass) *event.Reading { return &p.Wall }),
	object("scheduled_requests", passLoadFields, true, func(p *event.Pass) *event.PassLoad { return &p.Scheduled }),
	object("queued_requests", passLoadFields, true, func(p *event.Pass) *event.PassLoad { return &p.Queued }),
}

var passLoadFields = fields[event.PassLoad]{
	member("num_prefill_requests", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.Prefills }),
	member("sum_prefill_tokens", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.PrefillTokens }),
	member("var_prefill_length", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.PrefillVariance }),
	member("sum_prefill_kv_tokens", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.PrefillKV }),
	member("num_decode_requests", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.Decodes }),
	member("sum_decode_kv_tokens", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.DecodeKV }),
	member("var_decode_kv_tokens", bareReadings, func(p *event.PassLoad) *event.Reading { return &p.DecodeVariance }),
}
