package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var sglangEngine = Engine{
	Kind:    SGLang,
	owners:  []string{"sglang"},
	answers: isSGLang,
	details: sglangDetails,
	Metrics: gather.NewTable([]string{"sglang:"}, "dp_rank", slices.Concat([]gather.Alias{
		{Metric: "num_running_reqs", Role: gather.Running},
		{Metric: "num_queue_reqs", Role: gather.Waiting},
		{Metric: "num_grammar_queue_reqs", Role: gather.Queue, Name: "waiting_grammar"},
		{Metric: "num_prefill_bootstrap_queue_reqs", Role: gather.Queue, Name: "waiting_prefill_bootstrap"},
		{Metric: "num_prefill_prealloc_queue_reqs", Role: gather.Queue, Name: "waiting_prefill_bootstrap"}, // older name
		{Metric: "num_prefill_inflight_queue_reqs", Role: gather.Queue, Name: "waiting_prefill_transfer"},
		{Metric: "num_decode_prealloc_queue_reqs", Role: gather.Queue, Name: "waiting_decode_prealloc"},
		{Metric: "num_decode_transfer_queue_reqs", Role: gather.Queue, Name: "waiting_decode_transfer"},
		{Metric: "num_bootstrap_failed_reqs", Role: gather.OtherCount, Name: "kv_bootstrap_failed"},
		{Metric: "num_transfer_failed_reqs", Role: gather.OtherCount, Name: "kv_transfer_failed"},
		{Metric: "token_usage", Role: gather.KVUsage},
		{Metric: "num_used_tokens", Role: gather.KVUsed},
		{Metric: "eplb_gpu_physical_count_bucket", Role: gather.RankPicks},
		// Of a summary: mean rank / busiest rank, mean over layers and passes.
		{Metric: "eplb_balancedness_sum", Role: gather.Ratio, Name: "expert_rank_balance_share", Of: "eplb_balancedness_count"},
		{Metric: "max_total_num_tokens", Role: gather.KVTotal},
		{Metric: "gen_throughput", Role: gather.DecodeRate, Batch: true},
		{Metric: "cache_hit_rate", Role: gather.CacheHitShare, Batch: true},
		{Metric: "spec_accept_rate", Role: gather.DraftAcceptShare, Batch: true},
		{Metric: "spec_accept_length", Role: gather.OtherMean, Name: "accepted_draft_length", Batch: true},
		{Metric: "utilization", Role: gather.OtherMean, Name: "utilization_share"},
		{Metric: "fwd_occupancy", Role: gather.OtherPercent, Name: "forward_occupancy_share"},
		{Metric: "kv_evictable_tokens", Role: gather.OtherSum, Name: "kv_evictable_tokens"},
		{Metric: "prompt_tokens_histogram_sum", Role: gather.Ratio, Name: "prompt_tokens_per_request", Of: "prompt_tokens_histogram_count"},
		{Metric: "generation_tokens_histogram_sum", Role: gather.Ratio, Name: "generated_tokens_per_request", Of: "generation_tokens_histogram_count"},
		{Metric: "realtime_tokens", Role: gather.Generated, Label: "mode", Values: "decode"},
		{Metric: "generation_tokens", Role: gather.Generated, AtEnd: true},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "realtime_tokens", Role: gather.PromptComputed, Label: "mode", Values: "prefill_compute"},
		{Metric: "cached_tokens", Role: gather.PromptCached},
		{Metric: "num_requests", Role: gather.Finished},
		{Metric: "num_aborted_requests", Role: gather.Cancelled},
		{Metric: "num_retracted_requests", Role: gather.OtherCount, Name: event.CountPreemptions},
		{Metric: "forward_execution_seconds", Role: gather.DeviceBusy},
		{Metric: "time_to_first_token_seconds", Histogram: "ttft"},
		{Metric: "inter_token_latency_seconds", Histogram: "itl"},
		{Metric: "time_per_output_token_seconds", Histogram: "itl"}, // until early 2025
		{Metric: "e2e_request_latency_seconds", Histogram: "e2el"},
		{Metric: "queue_time_seconds", Histogram: "queue"},
		{Metric: "avg_request_queue_latency", Histogram: "queue"}, // until 2025-10
		{Metric: "per_stage_req_latency_seconds", Histogram: "prefill", Label: "stage", Values: "prefill_forward"},
	}, tierAliases("cached_tokens", "cache_source"))),
	collector: func(_ *Poller, m *metrics) collector { return &sglang{metrics: m} },
	Load: func(ctx context.Context, c *fetch.Client, _ *Info) (Load, map[string]float64) {
		report := new(event.Aggregates)
		_ = sglangLoad(ctx, c, report) // on an error there are none
		return Load{report.Running, report.Waiting, report.Decode}, nil
	},
	Programs: []Program{
		{Name: "sglang.launch_server", modules: []string{"sglang.launch_server"}, Port: 30000},
		{Name: "sglang serve", names: []string{"sglang"}, subcommands: []string{"serve"}, Port: 30000},
	},
	Settings: map[string]string{
		"--parallel": "--max-running-requests", "--ctx": "--context-length", "smaller prompt chunks": "--chunked-prefill-size",
		"more memory for the KV cache": "--mem-fraction-static", "shorter drafts": "--speculative-num-steps",
	},
}

// sglangInfo is what /server_info reports, or /get_server_info of older versions.
type sglangInfo struct {
	Version string          `json:"version"`
	Metrics bool            `json:"enable_metrics"`
	Name    string          `json:"served_model_name"`
	Path    string          `json:"model_path"`
	TP      int             `json:"tp_size"`
	Startup json.RawMessage `json:"startup_time"`
}

func (p *identification) sglangInfo(ctx context.Context) (info sglangInfo, ok bool) {
	ok = p.getJSON(ctx, "/server_info", &info) == nil || p.getJSON(ctx, "/get_server_info", &info) == nil
	return info, ok
}

func isSGLang(ctx context.Context, p *identification) bool {
	info, ok := p.sglangInfo(ctx)
	return ok && info.Path != "" && info.TP != 0
}

func sglangDetails(ctx context.Context, p *identification) {
	info, ok := p.sglangInfo(ctx)
	if !ok {
		return
	}
	p.info.Version, p.info.startup = cmp.Or(info.Version, p.info.Version), info.Startup
	if info.Metrics {
		p.info.MetricsPath = cmp.Or(p.info.MetricsPath, "/metrics")
	}
	if len(p.info.Models) == 0 && info.Name != "" {
		p.info.Models = []Model{{Loaded: true, Model: event.Model{Name: info.Name}}}
	}
}

// sglang collects the loads of SGLang, which are always available, and its metrics if it was started with
// --enable-metrics.
type sglang struct {
	*metrics                      // nil: started without --enable-metrics
	noLoads  bool                 // the server is too old to report loads
	infoRead bool                 // startup is of the last identification
	startup  []event.NamedReading // startup durations
}

func (g *sglang) recheck(*Poller) { g.noLoads, g.infoRead = false, false }

func (g *sglang) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	report := &event.Aggregates{Interval: s.sinceReport()}
	if g.metrics != nil {
		r, err := g.metrics.collect(ctx, s)
		if err != nil {
			return nil, err
		}
		report = r
	} else {
		addEndpoint(report, "/metrics", "the server was started without --enable-metrics")
	}
	if !g.infoRead {
		g.infoRead, g.startup = true, nil
		for _, n := range startupPhases("startup", s.info.startup, maxStartupDepth) {
			if n.OK() {
				g.startup = append(g.startup, n)
			} else {
				s.countMalformed(1)
			}
		}
	}
	for _, n := range g.startup {
		addReading(report, n)
	}
	return report, g.readLoads(ctx, s, report)
}

// readLoads adds the current load to the report, from /v1/loads.
func (g *sglang) readLoads(ctx context.Context, s *Poller, report *event.Aggregates) error {
	if why := g.metrics.several(); why != "" {
		addEndpoint(report, sglangLoads, why)
		return nil
	}
	if g.noLoads {
		addEndpoint(report, sglangLoads, "not supported by this server version")
		if g.metrics == nil {
			return s.checkAlive(ctx, report)
		}
		return nil
	}
	err := sglangLoad(ctx, s.client, report)
	switch {
	case fetch.HasStatus(err, http.StatusNotFound):
		g.noLoads = true
		return nil
	case err != nil && g.metrics == nil:
		return err
	case err != nil: // the error must not discard the metrics
		addEndpoint(report, sglangLoads, err.Error())
		return nil
	}
	addEndpoint(report, sglangLoads, "")
	return nil
}

// sglangLoads is the endpoint with the current load of each data-parallel rank.
const sglangLoads = "/v1/loads"

// sglangLoad replaces values from the metrics by those of the loads, which are newer by some steps.
func sglangLoad(ctx context.Context, c *fetch.Client, report *event.Aggregates) error {
	var l struct {
		Loads []struct {
			Rank     *int     `json:"dp_rank"`
			Running  *float64 `json:"num_running_reqs"`
			Waiting  *float64 `json:"num_waiting_reqs"`
			Used     *float64 `json:"num_used_tokens"`
			Total    *float64 `json:"max_total_num_tokens"`
			Usage    *float64 `json:"token_usage"`
			Rate     *float64 `json:"gen_throughput"`
			HitShare *float64 `json:"cache_hit_rate"`
		} `json:"loads"`
	}
	if err := c.JSON(ctx, sglangLoads+"?include=core", &l); err != nil {
		return err
	}
	seen, ranks := make(map[int]bool), []event.Rank(nil)
	all := l.Loads
	l.Loads = l.Loads[:0]
	for _, one := range all {
		if one.Rank != nil && seen[*one.Rank] { // ranks that share the work of another one repeat its load
			continue
		}
		if one.Rank != nil {
			seen[*one.Rank] = true
		}
		if one.Running != nil && *one.Running == 0 { // an idle rank keeps the values of its last batch
			one.HitShare = nil
			if one.Rate != nil {
				one.Rate = new(float64)
			}
		}
		if one.Rank != nil && len(seen) <= gather.MaxRanks {
			ranks = append(ranks, event.Rank{Name: strconv.Itoa(*one.Rank), Running: loadOf(one.Running), Waiting: loadOf(one.Waiting), KVUsage: loadOf(one.Usage)})
		}
		l.Loads = append(l.Loads, one)
	}
	sum := func(field func(i int) *float64, mean bool) event.Reading {
		total, n := 0.0, 0.0
		for i := range l.Loads {
			if v := field(i); v != nil && *v >= 0 {
				total, n = total+*v, n+1
			}
		}
		switch {
		case n == 0:
			return event.Reading{}
		case mean:
			total /= n
		}
		return event.ReportedValue(total)
	}
	for _, f := range []struct {
		into *event.Reading
		from event.Reading
		only bool // only if the metrics do not have it
	}{
		{&report.Running, sum(func(i int) *float64 { return l.Loads[i].Running }, false), false},
		{&report.Waiting, sum(func(i int) *float64 { return l.Loads[i].Waiting }, false), false},
		{&report.KVUsed, sum(func(i int) *float64 { return l.Loads[i].Used }, false), false},
		{&report.KVTotal, sum(func(i int) *float64 { return l.Loads[i].Total }, false), false},
		{&report.KVUsage, sum(func(i int) *float64 { return l.Loads[i].Usage }, true), false},
		{&report.Decode, sum(func(i int) *float64 { return l.Loads[i].Rate }, false), true},
		{&report.CacheHits, sum(func(i int) *float64 { return l.Loads[i].HitShare }, true), true},
	} {
		if f.from.OK() && !(f.only && f.into.OK()) {
			*f.into = f.from
		}
	}
	if len(ranks) > 1 {
		report.Ranks = ranks
	}
	return nil
}

// loadOf returns a number of a load; absent if the server does not report it.
func loadOf(v *float64) event.Reading {
	if v == nil || *v < 0 {
		return event.Reading{}
	}
	return event.ReportedValue(*v)
}

// maxStartup limits the number of startup phases, maxStartupDepth their nesting: CUDA graph capture is divided by
// purpose.
const maxStartup, maxStartupDepth = 16, 2

// startupPhases returns the durations of the startup phases in seconds. reported is a number, or an object of phases,
// whose names are appended to name.
func startupPhases(name string, reported json.RawMessage, depth int) (out []event.NamedReading) {
	var seconds *float64
	if json.Unmarshal(reported, &seconds) == nil {
		if depth == maxStartupDepth {
			name += "_whole"
		}
		if seconds != nil && *seconds >= 0 {
			out = append(out, event.NamedReading{Name: name + "_s", Reading: event.ReportedValue(*seconds)})
		}
		return out
	}
	var phases map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(reported, &phases) != nil {
		return nil
	}
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		out = append(out, startupPhases(name+"_"+stageName(phase), phases[phase], depth-1)...)
	}
	return out[:min(len(out), maxStartup)]
}
