// Package gather makes reports of the metrics that engines publish for Prometheus. Each engine calls its numbers otherwise, and again otherwise in
// another version: a table of aliases says which of them mean the same.
package gather

import "github.com/llmtop/llmtop/runtime/scrape/identify"

// role is what a metric tells.
type role uint8

const (
	none    role = iota // of histograms
	running             // requests
	atWork              // requests, those that wait included
	waiting
	kvUsage // 0..1
	kvUsed  // cells
	kvTotal
	kvBlocks // in all
	kvBlocksUsed
	kvPage     // cells in a block
	kvConfig   // in its labels: block_size, num_gpu_blocks
	decodeRate // tokens/s
	hitShare   // of prompt tokens that came from a cache, 0..1
	draftShare // of drafted tokens that were accepted, 0..1
	sleeps     // above 0: until it is woken, it works on nothing
	began      // s, when the process did

	generated // counters from here on, of tokens
	prompt    // cached ones included
	computed  // of prompts, cached ones excluded
	cached    // of prompts
	looked    // of prompts, up in a prefix cache
	hit       // of looked
	drafted
	accepted // of drafted
	finished // requests
	failed
	preempted
	busy    // s in which the device worked
	decoded // s in which requests were decoded, of each by itself
	numRoles
)

func (r role) counts() bool { return r >= generated }

// mean reports whether several engines behind one address have a mean rather than a sum.
func (r role) mean() bool {
	return r == kvUsage || r == hitShare || r == draftShare || r == kvPage || r == began
}

// alias says what a metric means. Of several that mean the same, the first one counts that is there. Counters are looked for with and without
// _total at the end, since older libraries do not write it.
type alias struct {
	metric string
	role   role
	hist   string // a name of event.Times; "": it is no histogram
	late   bool   // of tokens: they are counted when their request ends
	label  string // only where this label has one of the values, separated by |; "": wherever
	values string
}

// tables are the aliases of each kind of engine.
var tables = map[identify.Kind][]alias{
	identify.VLLM:     vllm,
	identify.SGLang:   sglang,
	identify.Llama:    llama,
	identify.TGI:      tgi,
	identify.TensorRT: tensorRT,
	identify.LMDeploy: lmdeploy,
	identify.Triton:   triton,
	identify.Dynamo:   dynamo,
}

// Knows reports whether the metrics of a kind of engine are known.
func Knows(k identify.Kind) bool { return tables[k] != nil }

var process = alias{metric: "process_start_time_seconds", role: began}

var vllm = []alias{
	process,
	{metric: "vllm:num_requests_running", role: running},
	{metric: "vllm:num_requests_waiting", role: waiting},
	{metric: "vllm:kv_cache_usage_perc", role: kvUsage},
	{metric: "vllm:gpu_cache_usage_perc", role: kvUsage}, // until 2025-11
	{metric: "vllm:cache_config_info", role: kvConfig},
	{metric: "vllm:engine_sleep_state", role: sleeps, label: "sleep_state", values: "weights_offloaded|discard_all"}, // since 2025-10
	{metric: "vllm:generation_tokens", role: generated},
	{metric: "vllm:prompt_tokens", role: prompt},
	{metric: "vllm:prompt_tokens_by_source", role: computed, label: "source", values: "local_compute"}, // since 2026-02
	{metric: "vllm:prompt_tokens_cached", role: cached},
	{metric: "vllm:prefix_cache_queries", role: looked},
	{metric: "vllm:gpu_prefix_cache_queries", role: looked}, // until 2025-11
	{metric: "vllm:prefix_cache_hits", role: hit},
	{metric: "vllm:gpu_prefix_cache_hits", role: hit}, // until 2025-11
	{metric: "vllm:spec_decode_num_draft_tokens", role: drafted},
	{metric: "vllm:spec_decode_num_accepted_tokens", role: accepted},
	{metric: "vllm:request_success", role: finished, label: "finished_reason", values: "stop|length|repetition"},
	{metric: "vllm:request_success", role: failed, label: "finished_reason", values: "abort|error"},
	{metric: "vllm:num_preemptions", role: preempted},
	{metric: "vllm:time_to_first_token_seconds", hist: "ttft"},
	{metric: "vllm:inter_token_latency_seconds", hist: "itl"},
	{metric: "vllm:time_per_output_token_seconds", hist: "itl"}, // until 2026-01, and really ITL
	{metric: "vllm:request_time_per_output_token_seconds", hist: "tpot"},
	{metric: "vllm:e2e_request_latency_seconds", hist: "e2el"},
	{metric: "vllm:request_queue_time_seconds", hist: "queue"},
	{metric: "vllm:request_prefill_time_seconds", hist: "prefill"},
	{metric: "vllm:request_decode_time_seconds", hist: "decode"},
	{metric: "vllm:request_inference_time_seconds", hist: "inference"},
}

var sglang = []alias{
	process,
	{metric: "sglang:num_running_reqs", role: running},
	{metric: "sglang:num_queue_reqs", role: waiting},
	{metric: "sglang:token_usage", role: kvUsage},
	{metric: "sglang:num_used_tokens", role: kvUsed},
	{metric: "sglang:max_total_num_tokens", role: kvTotal},
	{metric: "sglang:gen_throughput", role: decodeRate},
	{metric: "sglang:cache_hit_rate", role: hitShare},
	{metric: "sglang:spec_accept_rate", role: draftShare},
	{metric: "sglang:realtime_tokens", role: generated, label: "mode", values: "decode"},
	{metric: "sglang:generation_tokens", role: generated, late: true},
	{metric: "sglang:prompt_tokens", role: prompt},
	{metric: "sglang:realtime_tokens", role: computed, label: "mode", values: "prefill_compute"},
	{metric: "sglang:cached_tokens", role: cached},
	{metric: "sglang:num_requests", role: finished},
	{metric: "sglang:num_aborted_requests", role: failed},
	{metric: "sglang:num_retracted_requests", role: preempted},
	{metric: "sglang:forward_execution_seconds", role: busy},
	{metric: "sglang:time_to_first_token_seconds", hist: "ttft"},
	{metric: "sglang:inter_token_latency_seconds", hist: "itl"},
	{metric: "sglang:time_per_output_token_seconds", hist: "itl"}, // until early 2025
	{metric: "sglang:e2e_request_latency_seconds", hist: "e2el"},
	{metric: "sglang:queue_time_seconds", hist: "queue"},
	{metric: "sglang:avg_request_queue_latency", hist: "queue"}, // until 2025-10
	{metric: "sglang:per_stage_req_latency_seconds", hist: "prefill", label: "stage", values: "prefill_forward"},
}

// llama leaves out the rates, which hold only since somebody asked last.
var llama = []alias{
	{metric: "llamacpp:requests_processing", role: running},
	{metric: "llamacpp:requests_deferred", role: waiting},
	{metric: "llamacpp:kv_cache_usage_ratio", role: kvUsage}, // until 2025-07
	{metric: "llamacpp:kv_cache_tokens", role: kvUsed},       // until 2025-07
	{metric: "llamacpp:tokens_predicted", role: generated, late: true},
	{metric: "llamacpp:tokens_predicted_seconds", role: decoded},
	{metric: "llamacpp:prompt_tokens", role: computed},
	{metric: "llamacpp:prompt_tokens_cached", role: cached}, // since b10406
	{metric: "llamacpp:spec_decode_num_draft_tokens", role: drafted},
	{metric: "llamacpp:spec_decode_num_accepted_tokens", role: accepted},
}

// tgi tells no TTFT, and its times of a batch are not those of a request. Its time per token is that of the whole inference, prefill included, by all
// tokens: no TPOT.
var tgi = []alias{
	{metric: "tgi_batch_current_size", role: running},
	{metric: "tgi_queue_size", role: waiting},
	{metric: "tgi_request_success", role: finished},
	{metric: "tgi_request_failure", role: failed},
	{metric: "tgi_request_generated_tokens_sum", role: generated, late: true}, // of a histogram
	{metric: "tgi_request_input_length_sum", role: prompt},
	{metric: "tgi_request_mean_time_per_token_duration", hist: "time_per_token"},
	{metric: "tgi_request_duration", hist: "e2el"},
	{metric: "tgi_request_queue_duration", hist: "queue"},
	{metric: "tgi_request_inference_duration", hist: "inference"},
	{metric: "tgi_batch_inference_duration", hist: "batch_prefill", label: "method", values: "prefill"},
	{metric: "tgi_batch_inference_duration", hist: "batch_decode", label: "method", values: "decode"},
}
