package gather

// trtFinished are the reasons of TensorRT-LLM for the end of requests that finished; older versions have none. It counts
// cancelled ones and those that took too long as successes, too.
const trtFinished = "|stop|length"

var tensorRT = []alias{
	processStartAlias,
	{metric: "trtllm_num_requests_running", role: running},
	{metric: "trtllm:num_requests_running", role: running},
	{metric: "trtllm_num_requests_waiting", role: waiting},
	{metric: "trtllm:num_requests_waiting", role: waiting},
	{metric: "trtllm_kv_cache_utilization", role: kvUsage},
	{metric: "trtllm:kv_cache_utilization", role: kvUsage},
	{metric: "trtllm_kv_cache_max_blocks", role: kvBlocks},
	{metric: "trtllm_kv_cache_used_blocks", role: kvBlocksUsed},
	{metric: "trtllm_kv_cache_tokens_per_block", role: kvBlockSize},
	{metric: "trtllm_kv_cache_hit_rate", role: cacheHitShare},
	{metric: "trtllm:kv_cache_hit_rate", role: cacheHitShare},
	{metric: "trtllm_prompt_tokens", role: prompt},
	{metric: "trtllm_prompt_cached_tokens", role: promptCached}, // since 2026
	{metric: "trtllm_generation_tokens", role: generated, countedAtEnd: true},
	{metric: "trtllm_spec_decode_num_draft_tokens", role: drafted},
	{metric: "trtllm_spec_decode_num_accepted_tokens", role: accepted},
	{metric: "trtllm_request_success", role: finished, label: "finished_reason", values: trtFinished},
	{metric: "trtllm:request_success", role: finished, label: "finished_reason", values: trtFinished},
	{metric: "trtllm_request_success", role: otherCount, name: "finished_stop", label: "finished_reason", values: "stop"},
	{metric: "trtllm_request_success", role: otherCount, name: "finished_length", label: "finished_reason", values: "length"},
	{metric: "trtllm_request_success", role: cancelled, label: "finished_reason", values: "cancelled"},
	{metric: "trtllm_request_success", role: failed, label: "finished_reason", values: "timeout"},
	{metric: "trtllm_request_error", role: otherCount, name: "http_4xx", label: "http_code", values: "400|401|403|404|405|408|413|422|429"}, // since 2026
	{metric: "trtllm_request_error", role: otherCount, name: "http_5xx", label: "http_code", values: "500|501|502|503|504"},
	{metric: "trtllm_time_to_first_token_seconds", histogram: "ttft"},
	{metric: "trtllm:time_to_first_token_seconds", histogram: "ttft"},
	{metric: "trtllm_time_per_output_token_seconds", histogram: "tpot"},
	{metric: "trtllm:time_per_output_token_seconds", histogram: "tpot"},
	{metric: "trtllm_e2e_request_latency_seconds", histogram: "e2el"},
	{metric: "trtllm:e2e_request_latency_seconds", histogram: "e2el"},
	{metric: "trtllm_request_queue_time_seconds", histogram: "queue"},
	{metric: "trtllm:request_queue_time_seconds", histogram: "queue"},
	{metric: "trtllm_request_prefill_time_seconds", histogram: "prefill"},
	{metric: "trtllm_request_decode_time_seconds", histogram: "decode"},
	{metric: "trtllm_request_inference_time_seconds", histogram: "inference"},
	{metric: "trtllm_iteration_latency_seconds", histogram: "iteration"},
}

var lmdeploy = []alias{
	processStartAlias,
	{metric: "lmdeploy:num_requests_running", role: running},
	{metric: "lmdeploy:num_requests_waiting", role: waiting},
	{metric: "lmdeploy:gpu_cache_usage_perc", role: kvUsage},
	{metric: "lmdeploy:prefix_cache_hit_rate", role: cacheHitShare},
	{metric: "lmdeploy:prompt_tokens", role: prompt},
	{metric: "lmdeploy:generation_tokens", role: generated},
	{metric: "lmdeploy:num_requests_succeeded", role: finished}, // both count up, though their type is gauge
	{metric: "lmdeploy:num_requests_finished", role: finished},  // older name
	{metric: "lmdeploy:num_requests_failed", role: failed},
	{metric: "lmdeploy:spec_decode_num_draft_tokens", role: drafted},
	{metric: "lmdeploy:spec_decode_num_accepted_tokens", role: accepted},
	{metric: "lmdeploy:time_to_first_token_seconds", histogram: "ttft"},
	{metric: "lmdeploy:iter_token_latency", histogram: "itl"},
	{metric: "lmdeploy:time_per_output_token_seconds", histogram: "tpot"},
	{metric: "lmdeploy:e2e_request_latency_seconds", histogram: "e2el"},
	{metric: "lmdeploy:request_queue_time_seconds", histogram: "queue"},
	{metric: "lmdeploy:request_prefill_time_seconds", histogram: "prefill"},
	{metric: "lmdeploy:request_decode_time_seconds", histogram: "decode"},
	{metric: "lmdeploy:request_inference_time_seconds", histogram: "inference"},
}

// triton has no token counts; its backend for TensorRT-LLM has metrics of the queue and the cache.
var triton = []alias{
	{metric: "nv_trt_llm_request_metrics", role: running, label: "request_type", values: "active"},
	{metric: "nv_trt_llm_request_metrics", role: waiting, label: "request_type", values: "waiting"},
	{metric: "nv_inference_pending_request_count", role: waiting},
	{metric: "nv_trt_llm_kv_cache_block_metrics", role: kvUsage, label: "kv_cache_block_type", values: "fraction"},
	{metric: "nv_trt_llm_kv_cache_block_metrics", role: kvBlocks, label: "kv_cache_block_type", values: "max"},
	{metric: "nv_trt_llm_kv_cache_block_metrics", role: kvBlocksUsed, label: "kv_cache_block_type", values: "used"},
	{metric: "nv_trt_llm_kv_cache_block_metrics", role: kvBlockSize, label: "kv_cache_block_type", values: "tokens_per"},
	{metric: "nv_inference_request_success", role: finished},
	{metric: "nv_inference_request_failure", role: failed},
}

// dynamo counts a request as active (inflight, until 2026) from arrival to end, and as queued until its first token.
var dynamo = []alias{
	processStartAlias,
	{metric: "dynamo_frontend_active_requests", role: inFlight},
	{metric: "dynamo_frontend_inflight_requests", role: inFlight},
	{metric: "dynamo_frontend_queued_requests", role: waiting},
	{metric: "dynamo_frontend_stage_requests", role: waiting, label: "stage", values: "preprocess|route|dispatch"},
	{metric: "dynamo_frontend_output_tokens", role: generated},
	{metric: "dynamo_frontend_output_sequence_tokens_sum", role: generated, countedAtEnd: true}, // sum of a histogram
	{metric: "dynamo_frontend_input_sequence_tokens_sum", role: prompt},
	{metric: "dynamo_frontend_input_sequence_tokens_sum", role: promptLengths},
	{metric: "dynamo_frontend_input_sequence_tokens_count", role: promptLengthCount},
	{metric: "dynamo_frontend_output_sequence_tokens_sum", role: outputLengths},
	{metric: "dynamo_frontend_output_sequence_tokens_count", role: outputLengthCount},
	{metric: "dynamo_frontend_cached_tokens_sum", role: promptCached},
	{metric: "dynamo_frontend_requests", role: finished, label: "status", values: "success"},
	{metric: "dynamo_frontend_requests", role: failed, label: "status", values: "error"},
	{metric: "dynamo_frontend_time_to_first_token_seconds", histogram: "ttft"},
	{metric: "dynamo_frontend_inter_token_latency_seconds", histogram: "itl"},
	{metric: "dynamo_frontend_request_duration_seconds", histogram: "e2el"},
}
