package engine

import "github.com/llmtop/llmtop/runtime/source/scrape/gather"

var dynamoEngine = Engine{
	Kind:        Dynamo,
	owners:      []string{"nvidia"},
	metricsPath: "/metrics",
	// A request counts as active (inflight, until 2026) from arrival to end, and as queued until its first token.
	Metrics: gather.NewTable([]string{"dynamo_frontend_"}, "", []gather.Alias{
		{Metric: "active_requests", Role: gather.InFlight},
		{Metric: "inflight_requests", Role: gather.InFlight},
		{Metric: "queued_requests", Role: gather.Waiting},
		{Metric: "stage_requests", Role: gather.Waiting, Label: "stage", Values: "preprocess|route|dispatch"},
		{Metric: "output_tokens", Role: gather.Generated},
		{Metric: "output_sequence_tokens_sum", Role: gather.Generated, AtEnd: true}, // sum of a histogram
		{Metric: "output_sequence_tokens_sum", Role: gather.Ratio, Name: "generated_tokens_per_request", Of: "output_sequence_tokens_count"},
		{Metric: "input_sequence_tokens_sum", Role: gather.Prompt},
		{Metric: "input_sequence_tokens_sum", Role: gather.Ratio, Name: "prompt_tokens_per_request", Of: "input_sequence_tokens_count"},
		{Metric: "cached_tokens_sum", Role: gather.PromptCached},
		{Metric: "requests", Role: gather.Finished, Label: "status", Values: "success"},
		{Metric: "requests", Role: gather.Cancelled, Label: "error_type", Values: "cancelled|canceled"}, // since 2026-04, of status error
		{Metric: "requests", Role: gather.Failed, Label: "status", Values: "error"},
		{Metric: "time_to_first_token_seconds", Histogram: "ttft"},
		{Metric: "inter_token_latency_seconds", Histogram: "itl"},
		{Metric: "request_duration_seconds", Histogram: "e2el"},
	}),
}
