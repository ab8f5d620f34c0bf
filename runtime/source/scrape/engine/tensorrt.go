package engine

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var tensorRTEngine = Engine{
	Kind:        TensorRT,
	owners:      []string{"tensorrt_llm"},
	versionPath: "/version",
	metricsPath: "/prometheus/metrics",
	Metrics: gather.NewTable([]string{"trtllm_", "trtllm:"}, "", slices.Concat([]gather.Alias{
		{Metric: "num_requests_running", Role: gather.Running},
		{Metric: "num_requests_waiting", Role: gather.Waiting},
		{Metric: "kv_cache_utilization", Role: gather.KVUsage},
		{Metric: "kv_cache_max_blocks", Role: gather.KVBlocks},
		{Metric: "kv_cache_used_blocks", Role: gather.KVBlocksUsed},
		{Metric: "kv_cache_tokens_per_block", Role: gather.KVBlockSize},
		{Metric: "kv_cache_hit_rate", Role: gather.CacheHitShare},
		{Metric: "prompt_tokens", Role: gather.Prompt},
		{Metric: "prompt_cached_tokens", Role: gather.PromptCached}, // since 2026
		{Metric: "generation_tokens", Role: gather.Generated, AtEnd: true},
		acceptedDrafts,
		{Metric: "request_success", Role: gather.Finished, Label: "finished_reason", Values: trtFinished},
		{Metric: "request_success", Role: gather.OtherCount, Name: "finished_stop", Label: "finished_reason", Values: "stop"},
		{Metric: "request_success", Role: gather.OtherCount, Name: "finished_length", Label: "finished_reason", Values: "length"},
		{Metric: "request_success", Role: gather.Cancelled, Label: "finished_reason", Values: "cancelled"},
		{Metric: "request_success", Role: gather.Failed, Label: "finished_reason", Values: "timeout"},
		{Metric: "request_error", Role: gather.OtherCount, Name: "http_4xx", Label: "http_code", Values: "400|401|403|404|405|408|413|422|429"}, // since 2026
		{Metric: "request_error", Role: gather.OtherCount, Name: "http_5xx", Label: "http_code", Values: "500|501|502|503|504"},
		{Metric: "time_to_first_token_seconds", Histogram: "ttft"},
		{Metric: "time_per_output_token_seconds", Histogram: "tpot"},
	}, latencies, []gather.Alias{{Metric: "iteration_latency_seconds", Histogram: "iteration"}},
		tierAliases("prompt_cache_hit_tokens", "cache_level"), tierAliases("prompt_cached_tokens", "cache_tier"))).
		Bare("time_to_first_token_seconds", "e2e_request_latency_seconds"), // until 1.1
	collector: func(_ *Poller, m *metrics) collector { return &tensorRT{metrics: m} },
	Programs:  []Program{{Name: "trtllm-serve", names: []string{"trtllm-serve"}, Port: 8000}},
	Settings: map[string]string{
		"--parallel": "--max_batch_size", "--ctx": "--max_seq_len", "smaller prompt chunks": "--max_num_tokens",
		"more memory for the KV cache": "--kv_cache_free_gpu_memory_fraction",
	},
}

// trtFinished are the reasons of TensorRT-LLM for the end of requests that finished; older versions have none. It counts
// cancelled ones and those that took too long as successes, too.
const trtFinished = "|stop|length"

// tensorRT collects the Prometheus metrics of trtllm-serve, if it has some, and with --drain its iterations, which it
// returns only once.
type tensorRT struct {
	*metrics
	warned    bool           // the warning that other readers miss data was logged
	noMetrics bool           // the server has no Prometheus metrics
	ranks     int            // records of an iteration, one per rank
	counted   map[int64]bool // numbers of the iterations of ranks in the last answer; nil: there was none
	apart     bool           // ranks have reported different requests for one iteration, so each has its own
}

func (t *tensorRT) recheck(*Poller) { t.noMetrics = false }

func (t *tensorRT) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	report := &event.Aggregates{Interval: s.sinceReport()}
	if !t.noMetrics {
		err := t.metrics.read(ctx, s)
		switch {
		case fetch.HasStatus(err, http.StatusNotFound):
			t.noMetrics = true
			if !s.opt.Drain {
				s.logf("no Prometheus metrics: read the iterations with --drain")
			}
		case err != nil:
			return nil, err
		default:
			report = t.metrics.report(s)
		}
	}
	if !s.opt.Drain {
		addEndpoint(report, "/metrics", "the server returns each iteration only once: read them with --drain")
		if t.noMetrics {
			return report, s.checkAlive(ctx, report)
		}
		return report, nil
	}
	if !t.warned {
		t.warned = true
		s.logf("--drain: other readers miss the iterations that llmtop reads")
	}
	why := ""
	if err := t.drain(ctx, s, report); err != nil {
		if t.noMetrics {
			return nil, err
		}
		why = err.Error() // the error must not discard the other metrics
	}
	addEndpoint(report, "/metrics", why)
	return report, nil
}

// iteration is a forward pass as the server reports it, or as one rank does.
type iteration struct {
	Rank    *int    `json:"rank"`
	DPRank  *int    `json:"attentionDpRank"` // with requests of its own
	Number  int64   `json:"iter"`
	Latency float64 `json:"iterLatencyMS"`
	Active  float64 `json:"numActiveRequests"`
	KV      *struct {
		Used    float64 `json:"usedNumBlocks"`
		Max     float64 `json:"maxNumBlocks"`
		Tokens  float64 `json:"tokensPerBlock"`
		HitRate float64 `json:"cacheHitRate"`
	} `json:"kvCacheStats"`
}

// drain reads the iterations since the last poll: each is one forward pass, and the last one has the current state.
func (t *tensorRT) drain(ctx context.Context, s *Poller, report *event.Aggregates) error {
	var list []iteration
	if err := s.client.JSON(ctx, "/metrics", &list); err != nil || len(list) == 0 {
		return err
	}
	first := t.counted == nil // its iterations were before the session
	sum, count := 0.0, uint64(0)
	var last []iteration // the records of the last iteration of which all ranks have one
	counted := make(map[int64]bool)
	for _, it := range byIteration(list) {
		if n := len(it); n >= t.ranks || last == nil {
			last, t.ranks = it, max(n, t.ranks)
		}
		t.apart = t.apart || it[0].DPRank != nil || slices.ContainsFunc(it, func(o iteration) bool { return o.Active != it[0].Active })
		again := t.counted[it[0].Number] // another rank's record of it came before
		if it[0].hasRank() {
			counted[it[0].Number] = true
		}
		if latency := slices.MaxFunc(it, func(a, b iteration) int { return cmp.Compare(a.Latency, b.Latency) }).Latency; latency > 0 && !again && !first {
			sum += latency
			count++
		}
	}
	t.counted = counted
	report.Histograms = append(report.Histograms, event.Histogram{Name: "iteration", Count: count, Sum: int64(min(sum, 1e12) * 1e6)})
	switch {
	case !t.apart:
		last = last[:1] // all ranks report the same
	case len(last) < t.ranks:
		return nil // the other ranks' records come later
	}
	active, used, total, usedBlocks, blocks, hits, looked := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	for _, it := range last {
		active += max(it.Active, 0)
		if kv := it.KV; kv != nil && kv.Max > 0 {
			used, total = used+kv.Used*kv.Tokens, total+kv.Max*kv.Tokens
			usedBlocks, blocks = usedBlocks+kv.Used, blocks+kv.Max
			if it.Active > 0 || kv.HitRate > 0 { // an idle rank has looked nothing up
				hits, looked = hits+kv.HitRate*kv.Max, looked+kv.Max
			}
		}
	}
	report.Running = event.ReportedValue(active)
	if blocks > 0 {
		report.KVUsed, report.KVTotal = event.ReportedValue(used), event.ReportedValue(total)
		report.KVUsage = event.DerivedValue(usedBlocks / blocks)
	}
	if looked > 0 {
		report.CacheHits = event.ReportedValue(hits / looked)
	}
	return nil
}

// byIteration returns the records of each iteration: one, or one per rank, in any order.
func byIteration(list []iteration) (out [][]iteration) {
	at := make(map[int64]int)
	for _, it := range list {
		i, found := at[it.Number]
		if !it.hasRank() || !found || slices.ContainsFunc(out[i], it.sameRank) {
			at[it.Number], i = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], it)
	}
	return out
}

// sameRank reports whether two records are of the same rank: then the server has restarted between them.
func (it *iteration) sameRank(o iteration) bool {
	same := func(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	return same(it.Rank, o.Rank) && same(it.DPRank, o.DPRank)
}

// hasRank reports whether the record is of one rank.
func (it *iteration) hasRank() bool { return it.Rank != nil || it.DPRank != nil }
