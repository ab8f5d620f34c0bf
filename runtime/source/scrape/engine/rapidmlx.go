package engine

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var rapidMLXEngine = Engine{
	Kind:        RapidMLX,
	owners:      []string{"rapid-mlx"},
	metricsPath: "/metrics",
	// Hits of its cache are lookups, not tokens.
	Metrics: gather.NewTable([]string{"rapid_mlx_"}, "", []gather.Alias{
		{Metric: "requests_running", Role: gather.Running},
		{Metric: "requests_waiting", Role: gather.Waiting},
		{Metric: "completion_tokens", Role: gather.Generated, AtEnd: true},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "prefix_cache_tokens_saved", Role: gather.PromptCached},
		{Metric: "requests_processed", Role: gather.Finished},
		{Metric: "requests_cancelled", Role: gather.Cancelled},
		{Metric: "suffix_decode_draft_tokens_accepted", Role: gather.Ratio, Name: event.RatioAccepted, Of: "suffix_decode_draft_tokens_proposed"},
	}),
	Programs: []Program{{Name: "rapid-mlx", names: []string{"rapid-mlx"}, subcommands: []string{"serve"}, Port: 8000, modelAfterSubcommand: true}},
}
