package engine

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var vllmEngine = Engine{
	Kind:        VLLM,
	owners:      []string{"vllm"},
	versionPath: "/version",
	metricsPath: "/metrics",
	Metrics: gather.NewTable([]string{"vllm:"}, "engine", slices.Concat([]gather.Alias{
		{Metric: "num_requests_running", Role: gather.Running},
		{Metric: "num_requests_waiting", Role: gather.Waiting},
		{Metric: "kv_cache_usage_perc", Role: gather.KVUsage},
		{Metric: "gpu_cache_usage_perc", Role: gather.KVUsage}, // until 2025-11
		{Metric: "cache_config_info", Role: gather.KVConfig},
		{Metric: "engine_sleep_state", Role: gather.SleepState, Label: "sleep_state", Values: "weights_offloaded|discard_all"}, // since 2025-10
		{Metric: "generation_tokens", Role: gather.Generated},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "prompt_tokens_by_source", Role: gather.PromptComputed, Label: "source", Values: "local_compute"}, // since 2026-02
		{Metric: "prompt_tokens_cached", Role: gather.PromptCached},
		{Metric: "prefix_cache_queries", Role: gather.CacheQueries},
		{Metric: "gpu_prefix_cache_queries", Role: gather.CacheQueries}, // until 2025-11
		{Metric: "prefix_cache_hits", Role: gather.CacheHits},
		{Metric: "gpu_prefix_cache_hits", Role: gather.CacheHits}, // until 2025-11
		{Metric: "request_success", Role: gather.Finished, Label: "finished_reason", Values: "stop|length|repetition"},
		{Metric: "request_finish", Role: gather.Finished, Label: "finished_reason", Values: "stop|length"}, // of NIM
		{Metric: "request_failure", Role: gather.Failed},                                                   // of NIM
		{Metric: "request_success", Role: gather.Failed, Label: "finished_reason", Values: "error"},
		{Metric: "request_success", Role: gather.Cancelled, Label: "finished_reason", Values: "abort", MayLack: true}, // always 0 since 0.13
		{Metric: "request_success", Role: gather.OtherCount, Name: "finished_stop", Label: "finished_reason", Values: "stop"},
		{Metric: "request_success", Role: gather.OtherCount, Name: "finished_length", Label: "finished_reason", Values: "length"},
		{Metric: "request_success", Role: gather.OtherCount, Name: "finished_repetition", Label: "finished_reason", Values: "repetition"},
		{Metric: "num_preemptions", Role: gather.OtherCount, Name: event.CountPreemptions},
		{Metric: "num_requests_waiting_by_reason", Role: gather.OtherSum, Name: "waiting_capacity", Label: "reason", Values: "capacity"}, // since 2026-04
		{Metric: "num_requests_waiting_by_reason", Role: gather.OtherSum, Name: "waiting_deferred", Label: "reason", Values: "deferred"},
		{Metric: "external_prefix_cache_hits", Role: gather.Ratio, Name: "external_cache_hits_share", Of: "external_prefix_cache_queries"},
		{Metric: "kv_offload_store_bytes", Role: gather.OtherCount, Name: "kv_offload_bytes"},
		{Metric: "kv_offload_total_bytes", Role: gather.OtherCount, Name: "kv_offload_bytes", Label: "transfer_type", Values: "GPU_to_CPU"}, // older name
		{Metric: "kv_offload_load_bytes", Role: gather.OtherCount, Name: "kv_reload_bytes"},
		{Metric: "kv_offload_total_bytes", Role: gather.OtherCount, Name: "kv_reload_bytes", Label: "transfer_type", Values: "CPU_to_GPU"}, // older name
		{Metric: "mm_cache_hits", Role: gather.Ratio, Name: "multimodal_cache_hits_share", Of: "mm_cache_queries"},
		{Metric: "request_prompt_tokens_sum", Role: gather.Ratio, Name: "prompt_tokens_per_request", Of: "request_prompt_tokens_count"}, // of histograms
		{Metric: "request_generation_tokens_sum", Role: gather.Ratio, Name: "generated_tokens_per_request", Of: "request_generation_tokens_count"},
		{Metric: "lora_requests_info", Role: gather.Adapters},
		{Metric: "time_to_first_token_seconds", Histogram: "ttft"},
		{Metric: "inter_token_latency_seconds", Histogram: "itl"},
		{Metric: "time_per_output_token_seconds", Histogram: "itl"}, // until 2026-01; it measured ITL
		{Metric: "request_time_per_output_token_seconds", Histogram: "tpot"},
	}, latencies, draftAliases(), tierAliases("prompt_tokens_cached_by_source", "source"), tierAliases("prompt_tokens_by_source", "source")),
		gather.Alias{Metric: "http_requests", Role: gather.OtherCount, Name: "http_4xx", Label: "status", Values: "4xx"}, // of its HTTP server
		gather.Alias{Metric: "http_requests", Role: gather.OtherCount, Name: "http_5xx", Label: "status", Values: "5xx"},
	).Bare("num_requests_running", "num_requests_waiting", "gpu_cache_usage_perc", "kv_cache_usage_perc"), // in NIM
	collector: func(_ *Poller, m *metrics) collector { return &vllm{metrics: m} },
	Programs: []Program{
		{Name: "vllm serve", names: []string{"vllm"}, modules: []string{"vllm.entrypoints.cli.main"}, subcommands: []string{"serve"}, Port: 8000, modelAfterSubcommand: true},
		{Name: "vllm api_server", modules: []string{"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"}, Port: 8000},
	},
	Settings: map[string]string{
		"--parallel": "--max-num-seqs", "--ctx": "--max-model-len", "smaller prompt chunks": "--max-num-batched-tokens",
		"more memory for the KV cache": "--gpu-memory-utilization", "shorter drafts": "num_speculative_tokens",
	},
}

// vllm collects the metrics of vLLM and the number of requests in its HTTP server (/load).
type vllm struct {
	*metrics
	noMetrics  bool       // the server has no /metrics
	countsLoad bool       // /load was above 0 once, so the server counts requests
	noLoad     bool       // the server has no /load
	loadAt     event.Time // when /load was read last
	loadError  string     // why /load is not shown; "": it was read, or never requested
}

func (v *vllm) recheck(*Poller) { v.noMetrics, v.noLoad, v.loadError = false, false, "" }

// idleLoadEvery is the time between two requests to /load after one without a usable number, if the server has metrics.
// Tests use a longer time.
var idleLoadEvery = event.Time(5 * time.Second)

// updateState sets the engine to paused while it is in sleep mode, in which vLLM frees the GPU for other work.
func (v *vllm) updateState(s *Poller) {
	if v.metrics.gatherer.Asleep() {
		s.setState(event.EnginePaused, "asleep until it is woken up")
	} else {
		s.setState(event.EngineReady, "")
	}
}

func (v *vllm) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	if !v.noMetrics {
		report, err := v.metrics.collect(ctx, s)
		v.updateState(s)
		switch {
		case err == nil && v.metrics.why == "":
			v.addLoad(ctx, s, report)
			return report, nil
		case err != nil && !errors.Is(err, gather.ErrNoKnownMetrics) && !fetch.HasStatus(err, http.StatusNotFound):
			return nil, err
		}
		v.noMetrics = true
	}
	report := &event.Aggregates{Interval: s.sinceReport()}
	addEndpoint(report, "/metrics", cmp.Or(v.metrics.why, "the server has no metrics"))
	requests, err := v.readLoad(ctx, s, report)
	if err != nil && (v.metrics.why == "" || !fetch.Unsupported(err)) {
		return nil, err
	}
	report.Running = requests
	return report, nil
}

// readLoad reads the number of requests in the HTTP server, waiting ones included. It is absent until the server is
// known to count them.
func (v *vllm) readLoad(ctx context.Context, s *Poller, report *event.Aggregates) (event.Reading, error) {
	var load struct {
		Requests float64 `json:"server_load"`
	}
	v.loadAt, v.loadError = s.clock.Now(), ""
	err := s.client.JSON(ctx, "/load", &load)
	v.countsLoad = v.countsLoad || load.Requests > 0
	switch {
	case fetch.Unsupported(err): // a server without the endpoint is not polled again
		v.noLoad, v.loadError = true, "not supported by this server"
	case err != nil: // an overloaded or starting server refuses for a while
		v.loadError = err.Error()
	case !v.countsLoad:
		v.loadError = notCounted
	}
	addEndpoint(report, "/load", v.loadError)
	if v.loadError != "" {
		return event.Reading{}, err
	}
	return event.ReportedValue(load.Requests), nil
}

// notCounted is the reason why /load is not shown: without the flag it is always 0.
const notCounted = "0 so far: start the server with --enable-server-load-tracking"

// addLoad adds the number of requests to the report of the metrics. A failure of /load does not fail the poll.
func (v *vllm) addLoad(ctx context.Context, s *Poller, report *event.Aggregates) {
	if why := v.metrics.several(); why != "" {
		addEndpoint(report, "/load", why)
		return
	}
	if v.noLoad || v.loadError != "" && s.clock.Now()-v.loadAt < idleLoadEvery {
		addEndpoint(report, "/load", v.loadError)
		return
	}
	if requests, err := v.readLoad(ctx, s, report); err == nil && requests.OK() {
		addReading(report, event.NamedReading{Name: "server_load", Reading: requests})
	}
}
