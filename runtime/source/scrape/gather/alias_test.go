package gather_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// oneBucket returns a histogram with one bucket of 1 s.
func oneBucket(name, labels string, in, count, sum string) string {
	with := func(more string) string { return "{" + strings.Trim(labels+","+more, ",") + "} " }
	return name + "_bucket" + with(`le="1.0"`) + in + "\n" + name + "_bucket" + with(`le="+Inf"`) + count + "\n" +
		name + "_sum" + with("") + sum + "\n" + name + "_count" + with("") + count + "\n"
}

// TestNamesOfEachVersion: engines renamed metrics over time, and some versions have both names. The same thing counts
// once.
// rankBuckets is the histogram of a layer whose picks two ranks computed: the first one, and both.
func rankBuckets(layer, first, both int) (text string) {
	for _, le := range []string{"0.0", "1.0", "+Inf"} {
		text += fmt.Sprintf("sglang:eplb_gpu_physical_count_bucket{layer=\"%d\",le=%q} %d\n", layer, le, first)
		first = both
	}
	return text
}

// TestRankPicksAfterReset checks that counters that fell count from 0, and that text that is cut off does not count.
func TestRankPicksAfterReset(t *testing.T) {
	g := newGatherer(engine.SGLang)
	read(t, g, rankBuckets(3, 10, 30))
	if got := g.Report(0).ExpertRanks; len(got) != 0 {
		t.Errorf("picks from before: %v", got)
	}
	if err := g.Read(iotest.TimeoutReader(strings.NewReader(rankBuckets(3, 90, 99)))); err == nil {
		t.Fatal("a text that was cut off is read")
	}
	read(t, g, rankBuckets(3, 4, 5))
	if got, want := describe(g.Report(second)), "L3 [4 1]\n"; got != want {
		t.Errorf("%q after a restart, want %q", got, want)
	}
}

func TestNamesOfEachVersion(t *testing.T) {
	for name, c := range map[string]struct {
		kind        engine.Kind
		first, then string
		want        string
	}{
		"vLLM until 2025-06": {
			engine.VLLM,
			"vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_queries_total 100\nvllm:gpu_prefix_cache_hits_total 10\n" + oneBucket("vllm:time_per_output_token_seconds", "", "1", "1", "0.5"),
			"vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_queries_total 300\nvllm:gpu_prefix_cache_hits_total 60\n" + oneBucket("vllm:time_per_output_token_seconds", "", "3", "5", "8.5"),
			"kv 0.5 reported\nhits 0.25 derived\nitl n=4 mean=2000ms 1 bounds\ncache_hits_share 50/200\n",
		},
		"vLLM between 2025-09 and 2025-11": {
			engine.VLLM,
			"vllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.5\nvllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\n" +
				"vllm:gpu_prefix_cache_queries_total 0\nvllm:gpu_prefix_cache_hits_total 0\n" +
				oneBucket("vllm:time_per_output_token_seconds", "", "0", "0", "0") + oneBucket("vllm:inter_token_latency_seconds", "", "0", "0", "0"),
			"vllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.5\nvllm:prefix_cache_queries_total 8\nvllm:prefix_cache_hits_total 4\n" +
				"vllm:gpu_prefix_cache_queries_total 8\nvllm:gpu_prefix_cache_hits_total 4\n" +
				oneBucket("vllm:time_per_output_token_seconds", "", "2", "4", "6") + oneBucket("vllm:inter_token_latency_seconds", "", "2", "4", "6"),
			"kv 0.5 reported\nhits 0.5 derived\nitl n=4 mean=1500ms 1 bounds\ncache_hits_share 4/8\n",
		},
		"vLLM since 2026-02": {
			engine.VLLM,
			"vllm:prompt_tokens_total 100\nvllm:prompt_tokens_by_source_total{source=\"local_compute\"} 60\nvllm:prompt_tokens_by_source_total{source=\"local_cache_hit\"} 30\n" +
				"vllm:prompt_tokens_by_source_total{source=\"external_kv_transfer\"} 10\n",
			"vllm:prompt_tokens_total 200\nvllm:prompt_tokens_by_source_total{source=\"local_compute\"} 70\nvllm:prompt_tokens_by_source_total{source=\"local_cache_hit\"} 110\n" +
				"vllm:prompt_tokens_by_source_total{source=\"external_kv_transfer\"} 20\n",
			"prefill 5 derived\nin 100 derived\nexternal_tier_hits_share 10/100\ngpu_tier_hits_share 80/100\n",
		},
		"vLLM that offloads its KV cache": { // with the older names as well
			engine.VLLM,
			"vllm:num_requests_running 1\nvllm:kv_offload_store_bytes_total 100\nvllm:kv_offload_load_bytes_total 0\n" +
				"vllm:kv_offload_total_bytes_total{transfer_type=\"GPU_to_CPU\"} 100\nvllm:kv_offload_total_bytes_total{transfer_type=\"CPU_to_GPU\"} 0\n",
			"vllm:num_requests_running 1\nvllm:kv_offload_store_bytes_total 400\nvllm:kv_offload_load_bytes_total 50\n" +
				"vllm:kv_offload_total_bytes_total{transfer_type=\"GPU_to_CPU\"} 400\nvllm:kv_offload_total_bytes_total{transfer_type=\"CPU_to_GPU\"} 50\n",
			"running 1 reported\nkv_offload_bytes +300\nkv_reload_bytes +50\n",
		},
		"vLLM that offloaded its KV cache before": {
			engine.VLLM,
			"vllm:num_requests_running 1\nvllm:kv_offload_total_bytes_total{transfer_type=\"GPU_to_CPU\"} 100\nvllm:kv_offload_total_bytes_total{transfer_type=\"CPU_to_GPU\"} 0\n",
			"vllm:num_requests_running 1\nvllm:kv_offload_total_bytes_total{transfer_type=\"GPU_to_CPU\"} 400\nvllm:kv_offload_total_bytes_total{transfer_type=\"CPU_to_GPU\"} 50\n",
			"running 1 reported\nkv_offload_bytes +300\nkv_reload_bytes +50\n",
		},
		"vLLM's histogram that is named as a counter": {
			engine.VLLM,
			"vllm:num_requests_running 1\n" + oneBucket("vllm:iteration_tokens_total", "", "1", "2", "9"),
			"vllm:num_requests_running 1\n" + oneBucket("vllm:iteration_tokens_total", "", "5", "9", "99"),
			"running 1 reported\n",
		},
		"vLLM of several engines": { // shares are averaged, the rest is summed up
			engine.VLLM,
			"vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.4\nvllm:num_requests_waiting{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"1\"} 4\n",
			"vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.4\nvllm:num_requests_waiting{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"1\"} 4\n",
			"waiting 7 reported\nkv 0.3 reported\n",
		},
		"SGLang with speculation": {
			engine.SGLang, "sglang:spec_accept_rate{tp_rank=\"0\"} 0.5\n", "sglang:spec_accept_rate{tp_rank=\"0\"} 0.75\n", "accepted_draft_share 0.75\n",
		},
		"SGLang without": {engine.SGLang, "sglang:spec_accept_rate 0\nsglang:num_running_reqs 0\n", "sglang:spec_accept_rate 0\nsglang:num_running_reqs 1\n", "running 1 reported\n"},
		"SGLang with experts on two ranks": { // buckets are cumulative, and the last one has no bound; layer 9 is new
			engine.SGLang,
			"sglang:num_running_reqs 1\nsglang:eplb_balancedness_count{forward_mode=\"decode\"} 4\nsglang:eplb_balancedness_sum{forward_mode=\"decode\"} 3\n" +
				rankBuckets(3, 10, 30) + rankBuckets(7, 0, 0),
			"sglang:num_running_reqs 1\nsglang:eplb_balancedness_count{forward_mode=\"decode\"} 8\nsglang:eplb_balancedness_sum{forward_mode=\"decode\"} 5\n" +
				rankBuckets(3, 15, 42) + rankBuckets(7, 0, 0) + rankBuckets(9, 2, 3),
			"running 1 reported\nexpert_rank_balance_share 2/4\nL3 [5 7]\nL7 [0 0]\nL9 [2 1]\n",
		},
		"SGLang until 2025": {
			engine.SGLang,
			oneBucket("sglang:avg_request_queue_latency", "", "0", "0", "0") + oneBucket("sglang:time_per_output_token_seconds", "", "0", "0", "0"),
			oneBucket("sglang:avg_request_queue_latency", "", "1", "2", "3") + oneBucket("sglang:time_per_output_token_seconds", "", "4", "4", "2"),
			"itl n=4 mean=500ms 1 bounds\nqueue n=2 mean=1500ms 1 bounds\n",
		},
		"SGLang since 2026-08": { // streamed requests are counted separately
			engine.SGLang,
			"sglang:generation_tokens_total{is_streaming=\"True\"} 10\nsglang:generation_tokens_total{is_streaming=\"False\"} 20\n" +
				oneBucket("sglang:time_to_first_token_seconds", `is_streaming="True"`, "0", "0", "0"),
			"sglang:generation_tokens_total{is_streaming=\"True\"} 14\nsglang:generation_tokens_total{is_streaming=\"False\"} 26\n" +
				oneBucket("sglang:time_to_first_token_seconds", `is_streaming="True"`, "1", "1", "0.25") + oneBucket("sglang:time_to_first_token_seconds", `is_streaming="False"`, "0", "1", "1.75"),
			"decode 5 derived\nout 10 derived\nttft n=2 mean=1000ms 1 bounds\n",
		},
		"llama.cpp of 2024": {
			engine.Llama,
			"llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:kv_cache_tokens 512\nllamacpp:prompt_tokens_seconds 99\nllamacpp:predicted_tokens_seconds 99\n",
			"llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:kv_cache_tokens 512\nllamacpp:prompt_tokens_seconds 99\nllamacpp:predicted_tokens_seconds 99\n",
			"kv 0.5 reported\nused 512 reported\n",
		},
		"TensorRT-LLM through Dynamo of before": {
			engine.TensorRT,
			"trtllm:num_requests_running 3\ntrtllm:num_requests_waiting 1\ntrtllm:kv_cache_utilization 0.25\ntrtllm:kv_cache_hit_rate 0.75\n" +
				"trtllm:request_success_total{finished_reason=\"stop\"} 5\n" + oneBucket("trtllm:request_queue_time_seconds", "", "0", "0", "0"),
			"trtllm:num_requests_running 3\ntrtllm:num_requests_waiting 1\ntrtllm:kv_cache_utilization 0.25\ntrtllm:kv_cache_hit_rate 0.75\n" +
				"trtllm:request_success_total{finished_reason=\"stop\"} 7\n" + oneBucket("trtllm:request_queue_time_seconds", "", "2", "2", "1"),
			"running 3 reported\nwaiting 1 reported\nkv 0.25 reported\nhits 0.75 reported\nfinished 2 derived\nqueue n=2 mean=500ms 1 bounds\nfinished_stop +2\n",
		},
		"LMDeploy of 2025": {
			engine.LMDeploy,
			"lmdeploy:num_requests_finished 4\nlmdeploy:num_requests_running 1\n", "lmdeploy:num_requests_finished 9\nlmdeploy:num_requests_running 1\n",
			"running 1 reported\nfinished 5 derived\n",
		},
		"Dynamo of 2026": {
			engine.Dynamo,
			"dynamo_frontend_active_requests{model=\"m\"} 9\ndynamo_frontend_inflight_requests{model=\"m\"} 9\ndynamo_frontend_stage_requests{stage=\"route\"} 2\n" +
				"dynamo_frontend_stage_requests{stage=\"dispatch\"} 1\ndynamo_frontend_stage_requests{stage=\"decode\"} 6\ndynamo_frontend_output_tokens_total 10\n",
			"dynamo_frontend_active_requests{model=\"m\"} 9\ndynamo_frontend_inflight_requests{model=\"m\"} 9\ndynamo_frontend_stage_requests{stage=\"route\"} 2\n" +
				"dynamo_frontend_stage_requests{stage=\"dispatch\"} 1\ndynamo_frontend_stage_requests{stage=\"decode\"} 6\ndynamo_frontend_output_tokens_total 30\n",
			"running 6 derived\nwaiting 3 reported\ndecode 10 derived\nout 20 derived\n",
		},
		"Triton without TensorRT-LLM": {
			engine.Triton,
			"nv_inference_pending_request_count{model=\"a\"} 3\nnv_inference_pending_request_count{model=\"b\"} 2\nnv_inference_request_success{model=\"a\"} 1\n",
			"nv_inference_pending_request_count{model=\"a\"} 3\nnv_inference_pending_request_count{model=\"b\"} 2\nnv_inference_request_success{model=\"a\"} 5\n",
			"waiting 5 reported\nfinished 4 derived\n",
		},
	} {
		g := newGatherer(c.kind)
		read(t, g, c.first)
		g.Report(0)
		read(t, g, c.then)
		if got := describe(g.Report(2 * second)); got != c.want || g.Restarts != 0 {
			t.Errorf("%s:\n%swant\n%s%d restarts", name, got, c.want, g.Restarts)
		}
	}
}

// TestNamesAsSeen: what collects metrics changes how their names begin. It is still the engine, and what begins alike is not.
func TestNamesAsSeen(t *testing.T) {
	for name, want := range map[string]string{
		"vllm:num_requests_running":                     "vLLM",
		"vllm_num_requests_running":                     "vLLM vllm_*",
		"vllm.num_requests_running":                     "vLLM vllm.*",
		"ray_vllm:generation_tokens_total":              "vLLM ray_vllm:*",
		"otel_eu_vllm_generation_tokens":                "vLLM otel_eu_vllm_*",
		"kserve_sglang:num_queue_reqs":                  "SGLang kserve_sglang:*",
		"sglang_time_to_first_token_seconds_bucket":     "SGLang sglang_*",
		"lmdeploy_num_requests_waiting":                 "LMDeploy lmdeploy_*",
		"edge_llamacpp_tokens_predicted_total":          "llama.cpp edge_llamacpp_*",
		"ray_trtllm_generation_tokens_total":            "TensorRT-LLM ray_trtllm_*",
		"k_dynamo_frontend_queued_requests":             "Dynamo k_dynamo_frontend_*",
		"k_nv_inference_request_success":                "Triton k_nv_trt_llm_*, k_nv_inference_*",
		"acme_tgi_queue_size":                           "TGI acme_tgi_*",
		"lemonade_llamacpp_requests_processing":         "Lemonade",
		"num_requests_running":                          "vLLM without a prefix",
		"time_to_first_token_seconds_bucket":            "TensorRT-LLM without a prefix",
		"job:vllm:num_requests_running":                 "", // of a recording rule
		"sum:vllm_num_requests_running":                 "",
		"vllm_router:num_requests_running":              "",
		"myvllm_num_requests_running":                   "",
		"vllm:of_tomorrow":                              "",
		"request_success_total":                         "",
		"acme_num_requests_running":                     "",
		"vllm":                                          "",
		strings.Repeat("a", 99) + "_vllm:prompt_tokens": "",
	} {
		got := ""
		if e, as := engine.WithMetric(name); e != nil {
			got = as.Named(string(e.Kind))
			got = strings.NewReplacer("(", "", ")", "").Replace(got)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestRenamedMetrics: with a prefix before all names, the metrics of the HTTP server are found too, and nothing counts twice.
func TestRenamedMetrics(t *testing.T) {
	text := "kserve_vllm:num_requests_running 5\nkserve_vllm:generation_tokens_total 10\nvllm:generation_tokens_total 10\nkserve_http_requests_total{status=\"5xx\"} %d\n"
	g := gather.New(engine.Of(engine.VLLM).Metrics.In([]byte(text)))
	for _, n := range []int{1, 4} {
		read(t, g, fmt.Sprintf(text, n))
	}
	p := g.Report(second)
	if p.Running.V != 5 || len(p.Counts) != 1 || p.Counts[0].V != 3 {
		t.Errorf("%v running, %v", p.Running.V, p.Counts)
	}
	names := gather.NewTable([]string{"acme:"}, "", []gather.Alias{{Metric: "busy", Role: gather.Running}})
	for i := range 200 {
		_ = names.As(fmt.Sprintf("p%d_acme:busy", i))
	}
	if names.As("p0_acme:busy") == nil || names.As("q_acme:busy") != nil {
		t.Error("spellings have no bound")
	}
}

// TestFamilies: metrics of no engine have names that say of what they are.
func TestFamilies(t *testing.T) {
	for text, want := range map[string]string{
		"# HELP acme_llm_up x\n# TYPE acme_llm_up gauge\nacme_llm_up 1\nacme_llm_tokens_total{a=\"b c\"} 3\npython_info 1\n": "acme_llm_*",
		"a_x 1\nb:y 2\na_z 3\n":                                               "a_*, b:*",
		"a_x 1\nb_x 1\nc_x 1\nd_x 1\ne_x 1\n":                                 "a_*, b_*, c_*, d_*, …",
		"process_cpu_seconds_total 1\ngo_goroutines 3\n# No active runners\n": "",
		"<html>\n<body>hello_world</body>":                                    "",
		"{\"a\":1}":                                                           "",
		"":                                                                    "",
	} {
		if got := gather.Families([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("# TYPE ray_vllm_x gauge\nray_vllm_num_requests_running{a=\"b\"} 1\n"))
	f.Add([]byte("a:b.c_vllm:prompt_tokens_total 3\r\n_ 1\n:: 2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if families := gather.Families(text); len(families) > 5*300 || strings.ContainsAny(families, "\x1b\n") {
			t.Errorf("families %q", families)
		}
		for _, e := range engine.Engines {
			if e.Metrics != nil {
				if as := e.Metrics.In(text); as != nil {
					_ = gather.New(as).Read(bytes.NewReader(text))
				}
			}
		}
	})
}
