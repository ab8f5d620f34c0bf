package engine

import "github.com/llmtop/llmtop/runtime/source/scrape/gather"

var lemonadeEngine = Engine{
	Kind:        Lemonade,
	owners:      []string{"lemonade"},
	versionPath: "/api/v1/health",
	metricsPath: "/metrics",
	Metrics:     gather.NewTable([]string{"lemonade_"}, "", lemonadeMetrics()),
	Programs:    []Program{{Name: "lemond", names: []string{"lemond", "lemonade-server"}, Port: 13305, modelBy: []string{}}},
}

// lemonadeMetrics are those of Lemonade, which counts a request when it ends, and the current ones of its llama-servers,
// which it passes on. Its other engines have none.
func lemonadeMetrics() []gather.Alias {
	out := []gather.Alias{
		{Metric: "requests", Role: gather.Finished},
		{Metric: "output_tokens", Role: gather.Generated, AtEnd: true},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "cache_tokens", Role: gather.PromptCached},
	}
	for _, a := range llamaMetrics {
		if a.Role != gather.DecodeTime { // of a part of the tokens
			a.Metric = "llamacpp_" + a.Metric
			if a.Of != "" {
				a.Of = "llamacpp_" + a.Of
			}
			out = append(out, a)
		}
	}
	return out
}
