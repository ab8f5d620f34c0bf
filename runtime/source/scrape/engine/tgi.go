package engine

import (
	"context"

	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var tgiEngine = Engine{
	Kind:        TGI,
	answers:     isTGI,
	metricsPath: "/metrics",
	// No TTFT, and its batch times are not those of a request. Its time per token covers the whole inference, prefill
	// included, so it is not TPOT.
	Metrics: gather.NewTable([]string{"tgi_"}, "", []gather.Alias{
		{Metric: "batch_current_size", Role: gather.Running},
		{Metric: "queue_size", Role: gather.Waiting},
		{Metric: "request_success", Role: gather.Finished},
		{Metric: "request_failure", Role: gather.Cancelled, Label: "err", Values: "dropped"},
		{Metric: "request_failure", Role: gather.Failed},
		{Metric: "request_generated_tokens_sum", Role: gather.Generated, AtEnd: true}, // sum of a histogram
		{Metric: "request_generated_tokens_sum", Role: gather.Ratio, Name: "generated_tokens_per_request", Of: "request_generated_tokens_count"},
		{Metric: "request_input_length_sum", Role: gather.Prompt},
		{Metric: "request_input_length_sum", Role: gather.Ratio, Name: "prompt_tokens_per_request", Of: "request_input_length_count"},
		{Metric: "request_mean_time_per_token_duration", Histogram: "time_per_token"},
		{Metric: "request_duration", Histogram: "e2el"},
		{Metric: "request_queue_duration", Histogram: "queue"},
		{Metric: "request_inference_duration", Histogram: "inference"},
		{Metric: "batch_inference_duration", Histogram: "batch_prefill", Label: "method", Values: "prefill"},
		{Metric: "batch_inference_duration", Histogram: "batch_decode", Label: "method", Values: "decode"},
	}),
	Programs: []Program{
		{Name: "text-generation-launcher", names: []string{"text-generation-launcher"}, Port: 3000, portBy: []string{"--port", "-p"}},
		{Name: "text-generation-router", names: []string{"text-generation-router"}, Port: 3000, portBy: []string{"--port", "-p"}},
	},
	Settings: map[string]string{
		"--parallel": "--max-batch-size", "--ctx": "--max-total-tokens", "smaller prompt chunks": "--max-batch-prefill-tokens",
		"more memory for the KV cache": "--cuda-memory-fraction",
	},
}

func isTGI(ctx context.Context, p *identification) bool {
	var response struct {
		Model   string `json:"model_id"`
		Version string `json:"version"`
		Router  string `json:"router"`
		Inputs  int    `json:"max_input_tokens"`
		Total   int    `json:"max_total_tokens"`
	}
	if p.getJSON(ctx, "/info", &response) != nil || response.Model == "" || response.Router == "" && response.Inputs == 0 {
		return false
	}
	m := Model{Loaded: true}
	m.Name, m.Context = response.Model, max(response.Total, 0)
	p.info.Version, p.info.Models = response.Version, []Model{m}
	return true
}
