package engine

import (
	"slices"

	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var lmdeployEngine = Engine{
	Kind:        LMDeploy,
	owners:      []string{"lmdeploy"},
	metricsPath: "/metrics",
	Metrics: gather.NewTable([]string{"lmdeploy:"}, "", slices.Concat([]gather.Alias{
		{Metric: "num_requests_running", Role: gather.Running},
		{Metric: "num_requests_waiting", Role: gather.Waiting},
		{Metric: "gpu_cache_usage_perc", Role: gather.KVUsage},
		{Metric: "prefix_cache_hit_rate", Role: gather.CacheHitShare},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "generation_tokens", Role: gather.Generated},
		{Metric: "num_requests_succeeded", Role: gather.Finished}, // both count up, though their type is gauge
		{Metric: "num_requests_finished", Role: gather.Finished},  // older name
		{Metric: "num_requests_failed", Role: gather.Failed},
		acceptedDrafts,
		{Metric: "time_to_first_token_seconds", Histogram: "ttft"},
		{Metric: "iter_token_latency", Histogram: "itl"},
		{Metric: "time_per_output_token_seconds", Histogram: "tpot"},
	}, latencies)),
	Programs: []Program{{
		Name: "lmdeploy serve", names: []string{"lmdeploy"}, modules: []string{"lmdeploy"}, subcommands: []string{"serve"},
		Port: 23333, portBy: []string{"--server-port"}, modelBy: []string{"--model-name"},
	}},
	Settings: map[string]string{
		"--parallel": "--max-batch-size", "--ctx": "--session-len", "smaller prompt chunks": "--max-prefill-token-num",
		"more memory for the KV cache": "--cache-max-entry-count",
	},
}
