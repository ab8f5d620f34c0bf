package gather_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// named returns the reading with a name; absent if the report lacks it.
func named(list []event.NamedReading, name string) event.Reading {
	for _, n := range list {
		if n.Name == name {
			return n.Reading
		}
	}
	return event.Reading{}
}

// TestIdleEngines: what an engine keeps from its last batch, and the share of nothing, do not count while it is idle.
func TestIdleEngines(t *testing.T) {
	const none = -1
	for name, c := range map[string]struct {
		kind               engine.Kind
		running            string // samples: labels and value
		metric             string
		values             string
		decode, hits, more float64 // tokens/s, share of cache hits, tokens per draft
	}{
		"rate of the last batch":        {engine.SGLang, "m='a' 0", "sglang:gen_throughput", "m='a' 71.5", 0, none, none},
		"rate while it works":           {engine.SGLang, "m='a' 1", "sglang:gen_throughput", "m='a' 71.5", 71.5, none, none},
		"rate of an unknown load":       {engine.SGLang, "", "sglang:gen_throughput", "m='a' 71.5", 71.5, none, none},
		"rate of an idle rank":          {engine.SGLang, "dp_rank='0' 2\ndp_rank='1' 0", "sglang:gen_throughput", "dp_rank='0' 40\ndp_rank='1' 90", 40, none, none},
		"rates of parts":                {engine.SGLang, "p='' 2\np='1' 2\np='2' 0", "sglang:gen_throughput", "p='' 40", 40, none, none},
		"load by part only":             {engine.SGLang, "dp_rank='0',p='1' 0\ndp_rank='0',p='2' 3\ndp_rank='1',p='1' 0", "sglang:gen_throughput", "dp_rank='0' 40\ndp_rank='1' 90", 40, none, none},
		"hits of the last batch":        {engine.SGLang, "m='a' 0", "sglang:cache_hit_rate", "m='a' 0.3", none, none, none},
		"hits of idle ranks":            {engine.SGLang, "dp_rank='0' 0\ndp_rank='1' 5\ndp_rank='2' 0", "sglang:cache_hit_rate", "dp_rank='0' 0\ndp_rank='1' 0.3\ndp_rank='2' 0.9", none, 0.3, none},
		"a working rank without hits":   {engine.SGLang, "dp_rank='0' 1\ndp_rank='1' 5", "sglang:cache_hit_rate", "dp_rank='0' 0\ndp_rank='1' 0.3", none, 0.15, none},
		"no drafts":                     {engine.SGLang, "dp_rank='0' 1\ndp_rank='1' 5", "sglang:spec_accept_length", "dp_rank='0' 0\ndp_rank='1' 2.5", none, none, 2.5},
		"drafts of an unknown load":     {engine.SGLang, "", "sglang:spec_accept_length", "dp_rank='0' 0\ndp_rank='1' 2.5\ndp_rank='2' 3.5", none, none, 3},
		"all ranks without drafts":      {engine.SGLang, "dp_rank='0' 1", "sglang:spec_accept_length", "dp_rank='0' 0\ndp_rank='1' 0", none, none, none},
		"an engine that was never used": {engine.LMDeploy, "engine='0' 4\nengine='1' 0", "lmdeploy:prefix_cache_hit_rate", "engine='0' 0.4\nengine='1' 0", none, 0.4, none},
		"one that was used before":      {engine.LMDeploy, "engine='0' 4\nengine='1' 0", "lmdeploy:prefix_cache_hit_rate", "engine='0' 0.4\nengine='1' 0.2", none, 0.3, none},
		"no hits since the start":       {engine.TensorRT, "m='a' 0", "trtllm_kv_cache_hit_rate", "m='a' 0", none, 0, none},
	} {
		running := map[engine.Kind]string{engine.SGLang: "sglang:num_running_reqs", engine.LMDeploy: "lmdeploy:num_requests_running", engine.TensorRT: "trtllm_num_requests_running"}[c.kind]
		text := gauges(c.metric, c.values)
		if c.running != "" {
			text += gauges(running, c.running)
		}
		g := newGatherer(c.kind)
		read(t, g, text)
		p := g.Report(0)
		for what, v := range map[string]struct {
			got  event.Reading
			want float64
		}{"decode": {p.Decode, c.decode}, "hits": {p.CacheHits, c.hits}, "drafts": {named(p.More, "accepted_draft_length"), c.more}} {
			if v.got.OK() != (v.want != none) || v.got.OK() && (v.got.V < v.want-1e-9 || v.got.V > v.want+1e-9) {
				t.Errorf("%s: %s %+v, want %v", name, what, v.got, v.want)
			}
		}
	}
}

// TestDecodeOfEndedRequests: tokens that are counted at the end of a request were not generated since the last report.
func TestDecodeOfEndedRequests(t *testing.T) {
	g := newGatherer(engine.SGLang)
	for i, c := range []struct{ running, tokens int }{{1, 100}, {1, 100}, {0, 4100}, {0, 4100}} {
		read(t, g, fmt.Sprintf("sglang:num_running_reqs %d\nsglang:gen_throughput 55\nsglang:generation_tokens_total %d\n", c.running, c.tokens))
		got, want := g.Report(int64(i)*second).Decode, []event.Reading{event.ReportedValue(55), event.ReportedValue(55), {}, event.ReportedValue(0)}[i]
		if got != want {
			t.Errorf("text %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestQueues: requests that wait in queues of their own wait, and are reported by queue, in total and by rank.
func TestQueues(t *testing.T) {
	g := newGatherer(engine.SGLang)
	text := gauges("sglang:num_running_reqs", "dp_rank='0' 2\ndp_rank='1' 0") + gauges("sglang:num_queue_reqs", "dp_rank='0' 1\ndp_rank='1' 0") +
		gauges("sglang:num_decode_prealloc_queue_reqs", "dp_rank='0' 7\ndp_rank='1' 11") + gauges("sglang:num_decode_transfer_queue_reqs", "dp_rank='0' 0\ndp_rank='1' 3") +
		gauges("sglang:num_prefill_bootstrap_queue_reqs", "dp_rank='0' 5") + gauges("sglang:num_prefill_prealloc_queue_reqs", "dp_rank='0' 5") // both names of one queue
	read(t, g, text)
	p := g.Report(0)
	if p.Waiting != event.DerivedValue(27) || len(p.Ranks) != 2 || p.Ranks[0].Waiting.V != 13 || p.Ranks[1].Waiting.V != 14 {
		t.Errorf("waiting %+v, by rank %+v; want 27, 13 and 14", p.Waiting, p.Ranks)
	}
	for name, want := range map[string]float64{"waiting_decode_prealloc": 18, "waiting_decode_transfer": 3, "waiting_prefill_bootstrap": 5} {
		if got := named(p.More, name); got.V != want {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	g = newGatherer(engine.SGLang)
	read(t, g, "sglang:num_running_reqs 2\n"+"sglang:num_prefill_inflight_queue_reqs 4\n")
	if p := g.Report(0); p.Waiting.V != 4 {
		t.Errorf("waiting %+v without the main queue, want 4", p.Waiting)
	}
}

// TestCancelled: a request that its client ended did not fail, and a counter that never moves does not show that there
// are none.
func TestCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		kind              engine.Kind
		text              string // with the counts of text i
		failed, cancelled float64
	}{
		"Dynamo":             {engine.Dynamo, `dynamo_frontend_requests_total{error_type="cancelled",status="error"} %[1]d` + "\n" + `dynamo_frontend_requests_total{error_type="overload",status="error"} %[2]d`, 20, 10},
		"only cancelled":     {engine.Dynamo, `dynamo_frontend_requests_total{error_type="cancelled",status="error"} %[1]d`, -1, 10},
		"an older Dynamo":    {engine.Dynamo, `dynamo_frontend_requests_total{status="error"} %[2]d`, 20, -1},
		"TGI":                {engine.TGI, `tgi_request_failure{err="dropped"} %[1]d` + "\n" + `tgi_request_failure{err="generation"} %[2]d`, 20, 10},
		"vLLM that counts":   {engine.VLLM, `vllm:request_success_total{finished_reason="abort"} %[1]d` + "\n" + `vllm:request_success_total{finished_reason="error"} %[2]d`, 20, 10},
		"vLLM that does not": {engine.VLLM, `vllm:request_success_total{finished_reason="abort"} 0` + "\n" + `vllm:request_success_total{finished_reason="stop"} %[1]d`, -1, -1},
	} {
		g := newGatherer(c.kind)
		for i := range 2 {
			text := c.text
			if strings.Contains(text, "[1]") {
				text = strings.ReplaceAll(text, "%[1]d", fmt.Sprint(5+10*i))
			}
			read(t, g, strings.ReplaceAll(text, "%[2]d", fmt.Sprint(7+20*i))+"\n")
			p := g.Report(int64(i) * second)
			for what, v := range map[string]struct {
				got  event.Reading
				want float64
			}{"failed": {p.Failed, c.failed}, "cancelled": {p.Cancelled, c.cancelled}} {
				if i > 0 && (v.got.OK() != (v.want >= 0) || v.got.OK() && v.got.V != v.want) {
					t.Errorf("%s: %s %+v, want %v", name, what, v.got, v.want)
				}
			}
		}
	}
}

// TestConfiguredCells: the size of the KV cache is the server's own; that of hybrid models does not follow from blocks.
func TestConfiguredCells(t *testing.T) {
	for labels, want := range map[string]float64{
		"block_size='16',num_gpu_blocks='500'":                                                                8000,
		"block_size='16',num_gpu_blocks='500',kv_cache_size_tokens='None'":                                    8000,
		"block_size='528',num_gpu_blocks='300',kv_cache_size_tokens='41000'":                                  41000,
		"block_size='528',num_gpu_blocks='300',kv_cache_size_tokens='41000',mamba_page_size_padded='1081344'": 41000,
		"block_size='528',num_gpu_blocks='300',mamba_page_size_padded='1081344'":                              0,
		"block_size='16',num_gpu_blocks='500',mamba_page_size_padded='None'":                                  8000,
		"block_size='16',num_gpu_blocks='-3'":                                                                 0,
		"block_size='NaN',num_gpu_blocks='3'":                                                                 0,
		"block_size='1e300',num_gpu_blocks='1e300'":                                                           0,
	} {
		g := newGatherer(engine.VLLM)
		read(t, g, gauges("vllm:kv_cache_usage_perc", "engine='0' 0.5")+gauges("vllm:cache_config_info", labels+",engine='0' 1"))
		if p := g.Report(0); p.KVTotal.V != want || p.KVUsed.V != want/2 || p.KVTotal.OK() != (want > 0) {
			t.Errorf("%s: %v of %v, want %v", labels, p.KVUsed, p.KVTotal, want)
		}
	}
}

// TestCacheTiers: of which tier of the cache prompt tokens came is a share of all prompt tokens.
func TestCacheTiers(t *testing.T) {
	for name, c := range map[string]struct {
		kind                 engine.Kind
		prompt, cached, tier string
		sources              string // of 10, 20, 30, ... tokens
		want                 string
	}{
		"SGLang":               {engine.SGLang, "sglang:prompt_tokens_total", "sglang:cached_tokens_total", "cache_source", "device host storage_file storage_mooncake total", "cpu 20 disk 30 gpu 10 remote 40"},
		"vLLM":                 {engine.VLLM, "vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_by_source_total", "source", "device host disk p2p external_unspecified", "cpu 20 disk 30 external 50 gpu 10 remote 40"},
		"vLLM without tiers":   {engine.VLLM, "vllm:prompt_tokens_total", "vllm:prompt_tokens_by_source_total", "source", "local_compute local_cache_hit external_kv_transfer", "external 30 gpu 20"},
		"TensorRT-LLM":         {engine.TensorRT, "trtllm_prompt_tokens_total", "trtllm_prompt_cached_tokens_total", "cache_tier", "gpu host disk remote", "cpu 20 disk 30 gpu 10 remote 40"},
		"by iteration":         {engine.TensorRT, "trtllm_prompt_tokens_total", "trtllm_prompt_cache_hit_tokens_total", "cache_level", "gpu host", "cpu 20 gpu 10"},
		"SGLang without tiers": {engine.SGLang, "sglang:prompt_tokens_total", "sglang:cached_tokens_total", "cache_source", "total", ""},
	} {
		g, got := newGatherer(c.kind), ""
		for i := range 2 {
			text := fmt.Sprintf("%s %d\n", c.prompt, 1000*i)
			for k, source := range strings.Fields(c.sources) {
				text += fmt.Sprintf("%s{%s=%q} %d\n", c.cached, c.tier, source, 10*(k+1)*i)
			}
			read(t, g, text)
			if p := g.Report(int64(i) * second); i == 1 {
				for _, r := range p.Ratios {
					if tier, ok := strings.CutSuffix(r.Name, "_tier_hits_share"); ok && r.Whole.V == 1000 {
						got += fmt.Sprintf(" %s %v", tier, r.Part.V)
					}
				}
			}
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestStateByModel: of a server that runs several models each has its requests and its rate.
func TestStateByModel(t *testing.T) {
	g := newGatherer(engine.VLLM)
	for i := range 3 {
		text := ""
		for k, model := range []string{"small", "large"} {
			for e := range 2 {
				labels := fmt.Sprintf("{engine=%q,model_name=%q}", fmt.Sprint(e), model)
				text += fmt.Sprintf("vllm:num_requests_running%[1]s %[2]d\nvllm:num_requests_waiting%[1]s %[3]d\nvllm:kv_cache_usage_perc%[1]s 0.%[2]d\nvllm:generation_tokens_total%[1]s %[4]d\n",
					labels, k+e+1, k, 1000+i*(k+1)*10)
			}
		}
		read(t, g, text)
		if i == 1 { // two texts before one report
			continue
		}
		m := g.Report(int64(2*i) * second).ByModel
		if len(m) != 2 || m[0].Name != "small" || m[0].Running.V != 3 || m[1].Running.V != 5 || m[1].Waiting.V != 2 || m[1].KVUsage.V != 0.3 || m[0].Decode.OK() {
			t.Errorf("text %d: %+v", i, m)
		}
	}
	read(t, g, "vllm:num_requests_running{model_name=\"small\"} 1\nvllm:num_requests_running{model_name=\"large\"} 0\n"+
		"vllm:generation_tokens_total{engine=\"0\",model_name=\"small\"} 1050\nvllm:generation_tokens_total{engine=\"0\",model_name=\"large\"} 1100\n")
	if m := g.Report(2 * second).ByModel; len(m) != 2 || m[0].Decode.V != 15+5 || m[1].Decode.V != 30+10 { // the missing engines go on as before
		t.Errorf("tokens/s %+v", m)
	}
	g = newGatherer(engine.VLLM)
	read(t, g, "vllm:num_requests_running{model_name=\"small\"} 1\n")
	if m := g.Report(0).ByModel; m != nil {
		t.Errorf("a single model: %+v", m)
	}
}
