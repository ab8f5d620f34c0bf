package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestRenamedMetrics polls servers whose metrics have other names, are wrapped, or are at other places.
func TestRenamedMetrics(t *testing.T) {
	const ray = "ray_vllm_num_requests_running 7\nray_vllm_generation_tokens_total 30\n"
	for _, c := range []struct {
		name, base, path string // base: of the address; path: of the endpoint in reports
		pages            map[string]string
		kind             Kind
		running          float64
	}{
		{"a prefix, metrics alone", "", "/metrics (ray_vllm_*)", map[string]string{"/metrics": ray}, VLLM, 7},
		{"a prefix, known by its models", "", "/metrics (ray_vllm_*)", map[string]string{"/v1/models": modelList("vllm"), "/metrics": ray}, VLLM, 7},
		{"an underscore", "", "/metrics (sglang_*)", map[string]string{
			"/v1/models": modelList("sglang"), "/server_info": `{"version":"1","enable_metrics":true}`, "/metrics": "sglang_num_running_reqs 4\n",
		}, SGLang, 4},
		{"a router's metrics of its workers", "", "/engine_metrics (sglang_*)", map[string]string{
			"/v1/models": modelList("acme"), "/engine_metrics": "sglang_num_running_reqs{worker_addr=\"a\"} 4\nsglang_num_running_reqs{worker_addr=\"b\"} 5\n",
		}, SGLang, 9},
		{"no prefix", "", "/v1/metrics (without a prefix)", map[string]string{
			"/v1/models": modelList("system"), "/v1/metrics": "num_requests_running{model_name=\"m\"} 3\nrequest_finish_total{finished_reason=\"stop\"} 3\n",
		}, VLLM, 3},
		{"above the address", "/engines", "/metrics", map[string]string{
			"/engines/v1/models": modelList("docker"), "/metrics": "llamacpp:requests_processing{model=\"a\"} 1\nllamacpp:requests_processing{model=\"b\"} 5\n",
		}, Llama, 6},
		{"above the address of a known engine", "/openai", "/metrics", map[string]string{
			"/openai/v1/models": modelList("vllm"), "/metrics": "vllm:num_requests_running 2\n",
		}, VLLM, 2},
		{"a JSON string", "", "/metrics", map[string]string{"/v1/models": modelList("lmdeploy"), "/metrics": fmt.Sprintf("%q", "lmdeploy:num_requests_running 8\n")}, LMDeploy, 8},
		{"a JSON object, metrics alone", "", "/metrics", map[string]string{"/metrics": `{"metrics":"# TYPE x gauge\ntgi_batch_current_size 6\n"}`}, TGI, 6},
		{"Lemonade", "", "/metrics", map[string]string{
			"/v1/models": modelList("lemonade"), "/metrics": "lemonade_llamacpp_requests_processing{model_name=\"a\"} 2\nlemonade_llamacpp_requests_processing{model_name=\"b\"} 3\n",
		}, Lemonade, 5},
		{"Rapid-MLX", "", "/metrics", map[string]string{"/v1/models": modelList("rapid-mlx"), "/metrics": "rapid_mlx_requests_running 2\n"}, RapidMLX, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, c.pages)
			w := startPoller(t, Options{Address: f.URL + c.base})
			p, _ := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Running.OK() })
			if why, found := endpoint(p, c.path); p.Running.V != c.running || !found || why != "" {
				t.Errorf("%v running, endpoints %v", p.Running.V, p.Endpoints)
			}
			waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Name == string(c.kind) })
		})
	}
}

// TestMetricsComeAndChange: a server that has no metrics, or those of another engine, until a model is loaded.
func TestMetricsComeAndChange(t *testing.T) {
	f := newFake(t, map[string]string{"/v1/models": modelList("docker"), "/metrics": "# No active runners\n"})
	w := startPoller(t, Options{Address: f.URL})
	_, n := waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.Name == string(OpenAI) })
	for _, c := range []struct {
		text string
		kind Kind
	}{
		{"llamacpp:requests_processing 3\n", Llama},
		{"vllm:num_requests_running 3\n", VLLM},
		{"vllm_num_requests_running 3\n", ""},
		{"# No active runners\n", OpenAI},
		{"sglang_num_running_reqs 3\n", SGLang},
	} {
		reports := len(w.log.OfKind(event.KindAggregates))
		f.setPage("/metrics", c.text)
		if c.kind != "" {
			_, n = waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.Name == string(c.kind) })
		}
		if c.kind != OpenAI {
			waitFor(w, event.KindAggregates, reports, func(p *event.Aggregates) bool { return p.Running.V == 3 })
		}
	}
	for _, e := range w.log.OfKind(event.KindEngine) {
		if link := e.Data.(*event.EngineInfo).Remote; link.Link == event.LinkDisconnected && link.Reason != "no response yet" {
			t.Errorf("disconnected: %s", link.Reason)
		}
	}
}

// TestUnknownMetricsAreNamed: of metrics that llmtop does not know it says what they are of.
func TestUnknownMetricsAreNamed(t *testing.T) {
	const text = "python_info 1\nacme_llm_running 1\nacme_llm_tokens_total 3\n"
	f := newFake(t, map[string]string{"/v1/models": modelList("acme"), "/metrics": text})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if why, _ := endpoint(p, "/metrics"); !strings.HasSuffix(why, "no known engine at /metrics: acme_llm_*") {
		t.Errorf("endpoints %v", p.Endpoints)
	}
	w = startPoller(t, Options{Address: newFake(t, map[string]string{"/metrics": text}).URL})
	w.waitForLink(event.LinkDisconnected, "metrics of no known engine at /metrics: acme_llm_*", 0)
	w = startPoller(t, Options{Address: newFake(t, map[string]string{"/v1/models": modelList("lmdeploy"), "/metrics": text}).URL})
	p, _ = waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if why, _ := endpoint(p, "/metrics"); !strings.HasSuffix(why, "of this engine: acme_llm_*") {
		t.Errorf("endpoints %v", p.Endpoints)
	}
}

// TestSlotsWithoutMetrics: metrics that cannot be read do not hide the slots.
func TestSlotsWithoutMetrics(t *testing.T) {
	pages := llamaPages(t)
	pages["/metrics"] = "no metrics today"
	w := startPoller(t, Options{Address: newFake(t, pages).URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return len(p.Slots) > 0 })
	if why, _ := endpoint(p, "/metrics"); why == "" {
		t.Errorf("endpoints %v", p.Endpoints)
	}
	w.waitForLink(event.LinkConnected, "", 0)
}
