package engine

import (
	"context"

	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var tritonEngine = Engine{
	Kind:        Triton,
	answers:     isTriton,
	metricsPath: "/metrics",
	// No token counts; its backend for TensorRT-LLM has metrics of the queue and the cache.
	Metrics: gather.NewTable([]string{"nv_trt_llm_", "nv_inference_"}, "", []gather.Alias{
		{Metric: "request_metrics", Role: gather.Running, Label: "request_type", Values: "active"},
		{Metric: "request_metrics", Role: gather.Waiting, Label: "request_type", Values: "waiting"},
		{Metric: "pending_request_count", Role: gather.Waiting},
		{Metric: "kv_cache_block_metrics", Role: gather.KVUsage, Label: "kv_cache_block_type", Values: "fraction"},
		{Metric: "kv_cache_block_metrics", Role: gather.KVBlocks, Label: "kv_cache_block_type", Values: "max"},
		{Metric: "kv_cache_block_metrics", Role: gather.KVBlocksUsed, Label: "kv_cache_block_type", Values: "used"},
		{Metric: "kv_cache_block_metrics", Role: gather.KVBlockSize, Label: "kv_cache_block_type", Values: "tokens_per"},
		{Metric: "request_success", Role: gather.Finished},
		{Metric: "request_failure", Role: gather.Cancelled, Label: "reason", Values: "CANCELED"},
		{Metric: "request_failure", Role: gather.Failed},
	}),
}

func isTriton(ctx context.Context, p *identification) bool {
	var response struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if p.getJSON(ctx, "/v2", &response) != nil || response.Name != "triton" {
		return false
	}
	p.info.Version = response.Version
	return true
}
