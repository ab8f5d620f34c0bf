// Package gather converts the Prometheus metrics of inference engines into reports (event.Aggregates). Metric names
// differ between engines and versions: alias tables map them to their roles.
package gather

import (
	"strconv"

	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// role is the meaning of a metric.
type role uint8

const (
	noRole   role = iota // histograms have no role
	running              // requests
	inFlight             // requests, waiting ones included
	waiting
	kvUsage // 0..1
	kvUsed  // cells
	kvTotal
	kvBlocks // total
	kvBlocksUsed
	kvBlockSize      // cells per block
	kvConfig         // in its labels block_size and num_gpu_blocks
	decodeRate       // tokens/s
	cacheHitShare    // share of prompt tokens that came from a cache, 0..1
	draftAcceptShare // share of drafted tokens that were accepted, 0..1
	sleepState       // above 0: asleep until woken up
	processStart     // Unix time in s
	adapters         // Unix time in s of the current names of LoRA adapters, which are labels
	rankPicks        // picks of experts, of which the label le has the rank
	otherSum         // under the alias's name
	otherMean        // under the alias's name: averaged over several engines
	otherPercent     // as otherMean, but 0 to 100

	generated      // tokens; counters from here on
	prompt         // prompt tokens, cached ones included
	promptComputed // prompt tokens, cached ones excluded
	promptCached   // prompt tokens
	cacheQueries   // prompt tokens looked up in a prefix cache
	cacheHits      // of cacheQueries
	drafted
	accepted          // of drafted
	drafts            // each of one or more tokens
	externalQueries   // prompt tokens looked up in a cache of another engine or a store
	externalHits      // of externalQueries
	multimodalQueries // items looked up in the cache of images and sound
	multimodalHits    // of multimodalQueries
	promptTime        // s of batches with prompt tokens
	promptLengths     // prompt tokens of ended requests
	promptLengthCount // requests in promptLengths
	outputLengths     // generated tokens of ended requests
	outputLengthCount // requests in outputLengths
	otherCount        // under the alias's name
	finished          // requests
	failed
	cancelled // by their client
	preempted
	balance      // shares of balancedness, summed over passes
	balanceCount // passes in balance
	deviceBusy   // device time in s
	decodeTime   // decode time in s, summed over requests

	acceptedFirst // drafts whose first token was accepted; the roles after it are of the following tokens
	numRoles      = acceptedFirst + draftPositions
)

// draftPositions is the number of positions of a draft that are told apart.
const draftPositions = 8

func (r role) isCounter() bool { return r >= generated }

// isMean reports whether several engines behind one address are averaged instead of summed up.
func (r role) isMean() bool {
	switch r {
	case kvUsage, cacheHitShare, draftAcceptShare, kvBlockSize, processStart, otherMean, otherPercent:
		return true
	}
	return false
}

// alias gives the meaning of a metric. If a server has several metrics with the same meaning, the first one counts.
// Counters match with and without the suffix _total, because older libraries omit it.
type alias struct {
	metric       string
	role         role
	name         string // of an other number
	histogram    string // name of an event.Histogram; "": the metric is not a histogram
	countedAtEnd bool   // tokens are counted when their request ends
	label        string // use only samples in which this label has one of the values (separated by |); "": all samples
	values       string
}

// withDrafts adds the speculation counters that vLLM and llama.cpp have under their prefixes.
func withDrafts(prefix string, table []alias) []alias {
	table = append(table,
		alias{metric: prefix + "spec_decode_num_drafts", role: drafts},
		alias{metric: prefix + "spec_decode_num_draft_tokens", role: drafted},
		alias{metric: prefix + "spec_decode_num_accepted_tokens", role: accepted})
	for i := range draftPositions {
		table = append(table, alias{
			metric: prefix + "spec_decode_num_accepted_tokens_per_pos", role: acceptedFirst + role(i), label: "position", values: strconv.Itoa(i),
		})
	}
	return table
}

// aliasTables holds the aliases of each kind of engine.
var aliasTables = map[identify.Kind][]alias{
	identify.VLLM:     withDrafts("vllm:", vllm),
	identify.SGLang:   sglang,
	identify.Llama:    withDrafts("llamacpp:", llama),
	identify.TGI:      tgi,
	identify.TensorRT: tensorRT,
	identify.LMDeploy: lmdeploy,
	identify.Triton:   triton,
	identify.Dynamo:   dynamo,
}

// Supports reports whether there are aliases for a kind of engine.
func Supports(k identify.Kind) bool { return aliasTables[k] != nil }

var processStartAlias = alias{metric: "process_start_time_seconds", role: processStart}

var vllm = []alias{
	processStartAlias,
	{metric: "vllm:num_requests_running", role: running},
	{metric: "vllm:num_requests_waiting", role: waiting},
	{metric: "vllm:kv_cache_usage_perc", role: kvUsage},
	{metric: "vllm:gpu_cache_usage_perc", role: kvUsage}, // until 2025-11
	{metric: "vllm:cache_config_info", role: kvConfig},
	{metric: "vllm:engine_sleep_state", role: sleepState, label: "sleep_state", values: "weights_offloaded|discard_all"}, // since 2025-10
	{metric: "vllm:generation_tokens", role: generated},
	{metric: "vllm:prompt_tokens", role: prompt},
	{metric: "vllm:prompt_tokens_by_source", role: promptComputed, label: "source", values: "local_compute"}, // since 2026-02
	{metric: "vllm:prompt_tokens_cached", role: promptCached},
	{metric: "vllm:prefix_cache_queries", role: cacheQueries},
	{metric: "vllm:gpu_prefix_cache_queries", role: cacheQueries}, // until 2025-11
	{metric: "vllm:prefix_cache_hits", role: cacheHits},
	{metric: "vllm:gpu_prefix_cache_hits", role: cacheHits}, // until 2025-11
	{metric: "vllm:request_success", role: finished, label: "finished_reason", values: "stop|length|repetition"},
	{metric: "vllm:request_success", role: failed, label: "finished_reason", values: "error"},
	{metric: "vllm:request_success", role: cancelled, label: "finished_reason", values: "abort"},
	{metric: "vllm:request_success", role: otherCount, name: "finished_stop", label: "finished_reason", values: "stop"},
	{metric: "vllm:request_success", role: otherCount, name: "finished_length", label: "finished_reason", values: "length"},
	{metric: "vllm:request_success", role: otherCount, name: "finished_repetition", label: "finished_reason", values: "repetition"},
	{metric: "vllm:num_preemptions", role: preempted},
	{metric: "vllm:num_requests_waiting_by_reason", role: otherSum, name: "waiting_capacity", label: "reason", values: "capacity"}, // since 2026-04
	{metric: "vllm:num_requests_waiting_by_reason", role: otherSum, name: "waiting_deferred", label: "reason", values: "deferred"},
	{metric: "vllm:external_prefix_cache_queries", role: externalQueries},
	{metric: "vllm:external_prefix_cache_hits", role: externalHits},
	{metric: "vllm:mm_cache_queries", role: multimodalQueries},
	{metric: "vllm:mm_cache_hits", role: multimodalHits},
	{metric: "vllm:request_prompt_tokens_sum", role: promptLengths}, // sums of histograms
	{metric: "vllm:request_prompt_tokens_count", role: promptLengthCount},
	{metric: "vllm:request_generation_tokens_sum", role: outputLengths},
	{metric: "vllm:request_generation_tokens_count", role: outputLengthCount},
	{metric: "vllm:lora_requests_info", role: adapters},
	{metric: "http_requests", role: otherCount, name: "http_4xx", label: "status", values: "4xx"}, // of its HTTP server
	{metric: "http_requests", role: otherCount, name: "http_5xx", label: "status", values: "5xx"},
	{metric: "vllm:time_to_first_token_seconds", histogram: "ttft"},
	{metric: "vllm:inter_token_latency_seconds", histogram: "itl"},
	{metric: "vllm:time_per_output_token_seconds", histogram: "itl"}, // until 2026-01; it measured ITL
	{metric: "vllm:request_time_per_output_token_seconds", histogram: "tpot"},
	{metric: "vllm:e2e_request_latency_seconds", histogram: "e2el"},
	{metric: "vllm:request_queue_time_seconds", histogram: "queue"},
	{metric: "vllm:request_prefill_time_seconds", histogram: "prefill"},
	{metric: "vllm:request_decode_time_seconds", histogram: "decode"},
	{metric: "vllm:request_inference_time_seconds", histogram: "inference"},
}

var sglang = []alias{
	processStartAlias,
	{metric: "sglang:num_running_reqs", role: running},
	{metric: "sglang:num_queue_reqs", role: waiting},
	{metric: "sglang:token_usage", role: kvUsage},
	{metric: "sglang:num_used_tokens", role: kvUsed},
	{metric: "sglang:eplb_gpu_physical_count_bucket", role: rankPicks},
	{metric: "sglang:eplb_balancedness_sum", role: balance}, // of a summary
	{metric: "sglang:eplb_balancedness_count", role: balanceCount},
	{metric: "sglang:max_total_num_tokens", role: kvTotal},
	{metric: "sglang:gen_throughput", role: decodeRate},
	{metric: "sglang:cache_hit_rate", role: cacheHitShare},
	{metric: "sglang:spec_accept_rate", role: draftAcceptShare},
	{metric: "sglang:spec_accept_length", role: otherMean, name: "accepted_draft_length"},
	{metric: "sglang:utilization", role: otherMean, name: "utilization_share"},
	{metric: "sglang:fwd_occupancy", role: otherPercent, name: "forward_occupancy_share"},
	{metric: "sglang:kv_evictable_tokens", role: otherSum, name: "kv_evictable_tokens"},
	{metric: "sglang:prompt_tokens_histogram_sum", role: promptLengths}, // sums of histograms
	{metric: "sglang:prompt_tokens_histogram_count", role: promptLengthCount},
	{metric: "sglang:generation_tokens_histogram_sum", role: outputLengths},
	{metric: "sglang:generation_tokens_histogram_count", role: outputLengthCount},
	{metric: "sglang:realtime_tokens", role: generated, label: "mode", values: "decode"},
	{metric: "sglang:generation_tokens", role: generated, countedAtEnd: true},
	{metric: "sglang:prompt_tokens", role: prompt},
	{metric: "sglang:realtime_tokens", role: promptComputed, label: "mode", values: "prefill_compute"},
	{metric: "sglang:cached_tokens", role: promptCached},
	{metric: "sglang:num_requests", role: finished},
	{metric: "sglang:num_aborted_requests", role: cancelled},
	{metric: "sglang:num_retracted_requests", role: preempted},
	{metric: "sglang:forward_execution_seconds", role: deviceBusy},
	{metric: "sglang:time_to_first_token_seconds", histogram: "ttft"},
	{metric: "sglang:inter_token_latency_seconds", histogram: "itl"},
	{metric: "sglang:time_per_output_token_seconds", histogram: "itl"}, // until early 2025
	{metric: "sglang:e2e_request_latency_seconds", histogram: "e2el"},
	{metric: "sglang:queue_time_seconds", histogram: "queue"},
	{metric: "sglang:avg_request_queue_latency", histogram: "queue"}, // until 2025-10
	{metric: "sglang:per_stage_req_latency_seconds", histogram: "prefill", label: "stage", values: "prefill_forward"},
}

// llama omits the rates: they cover only the time since any reader's last request.
var llama = []alias{
	{metric: "llamacpp:requests_processing", role: running},
	{metric: "llamacpp:requests_deferred", role: waiting},
	{metric: "llamacpp:kv_cache_usage_ratio", role: kvUsage}, // until 2025-07
	{metric: "llamacpp:kv_cache_tokens", role: kvUsed},       // until 2025-07
	{metric: "llamacpp:tokens_predicted", role: generated, countedAtEnd: true},
	{metric: "llamacpp:tokens_predicted_seconds", role: decodeTime},
	{metric: "llamacpp:prompt_tokens", role: promptComputed},
	{metric: "llamacpp:prompt_seconds", role: promptTime},
	{metric: "llamacpp:n_busy_slots_per_decode", role: otherMean, name: "busy_slots_per_pass"}, // a mean since the start
	{metric: "llamacpp:prompt_tokens_cached", role: promptCached},                              // since b10406
}

// tgi has no TTFT, and its batch times are not those of a request. Its time per token covers the whole inference,
// prefill included, so it is not TPOT.
var tgi = []alias{
	{metric: "tgi_batch_current_size", role: running},
	{metric: "tgi_queue_size", role: waiting},
	{metric: "tgi_request_success", role: finished},
	{metric: "tgi_request_failure", role: failed},
	{metric: "tgi_request_generated_tokens_sum", role: generated, countedAtEnd: true}, // sum of a histogram
	{metric: "tgi_request_generated_tokens_sum", role: outputLengths},
	{metric: "tgi_request_generated_tokens_count", role: outputLengthCount},
	{metric: "tgi_request_input_length_sum", role: prompt},
	{metric: "tgi_request_input_length_sum", role: promptLengths},
	{metric: "tgi_request_input_length_count", role: promptLengthCount},
	{metric: "tgi_request_mean_time_per_token_duration", histogram: "time_per_token"},
	{metric: "tgi_request_duration", histogram: "e2el"},
	{metric: "tgi_request_queue_duration", histogram: "queue"},
	{metric: "tgi_request_inference_duration", histogram: "inference"},
	{metric: "tgi_batch_inference_duration", histogram: "batch_prefill", label: "method", values: "prefill"},
	{metric: "tgi_batch_inference_duration", histogram: "batch_decode", label: "method", values: "decode"},
}
