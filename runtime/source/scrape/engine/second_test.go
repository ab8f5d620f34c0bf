package engine

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// twoEndpointServer is a server with metrics and a second endpoint that is read in the same poll.
type twoEndpointServer struct {
	name            string
	metrics, second string // paths
	text            string // metrics with a token counter
	pages           map[string]string
}

func twoEndpointServers(t *testing.T) []twoEndpointServer {
	return []twoEndpointServer{
		{"SGLang", "/metrics", "/v1/loads", "sglang:num_running_reqs 1\nsglang:realtime_tokens_total{mode=\"decode\"} %d\n", map[string]string{
			"/v1/models": modelList("sglang"), "/server_info": `{"version":"0.5.17","enable_metrics":true}`, "/v1/loads": sampleOf(t, "sglang_v1_loads.json"),
		}},
		{"TensorRT-LLM", "/prometheus/metrics", "/metrics", "trtllm_num_requests_running 1\ntrtllm_generation_tokens_total %d\n", map[string]string{
			"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.2.0"}`, "/metrics": "[]",
		}},
		{"llama.cpp", "/metrics", "/slots", "llamacpp:requests_processing 1\nllamacpp:tokens_predicted_total %d\n", map[string]string{
			"/v1/models": modelList("llamacpp"), "/props": sampleOf(t, "llamacpp_props.json"), "/slots": `[{"id":0,"n_ctx":64,"is_processing":true,"id_task":1}]`,
		}},
	}
}

// TestTokensCountWhenSecondEndpointFails: tokens from the metrics count once, even if the second endpoint fails.
func TestTokensCountWhenSecondEndpointFails(t *testing.T) {
	for _, c := range twoEndpointServers(t) {
		t.Run(c.name, func(t *testing.T) {
			const first, step = 1000, 100
			var tokens, failures atomic.Int64
			var fails, still, gone atomic.Bool
			tokens.Store(first - step)
			f := newFake(t, maps.Clone(c.pages))
			f.setHandler(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case gone.Load():
					panic(http.ErrAbortHandler)
				case r.URL.Path == c.second && fails.Load():
					failures.Add(1)
					panic(http.ErrAbortHandler)
				case r.URL.Path != c.metrics:
					f.servePage(w, r)
				case still.Load():
					_, _ = io.WriteString(w, fmt.Sprintf(c.text, tokens.Load()))
				default:
					_, _ = io.WriteString(w, fmt.Sprintf(c.text, tokens.Add(step)))
				}
			})
			w := startPoller(t, Options{Address: f.URL, Drain: true})
			works := func(p *event.Aggregates) bool {
				why, there := endpoint(p, c.second)
				return there && why == ""
			}
			_, n := waitFor(w, event.KindAggregates, 2, works)
			before := len(w.log.OfKind(event.KindEngine))
			fails.Store(true)
			for range 3 {
				_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
					why, _ := endpoint(p, c.second)
					return p.Running.OK() && strings.Contains(why, "connection")
				})
			}
			fails.Store(false)
			_, n = waitFor(w, event.KindAggregates, n, works)
			still.Store(true)
			waitFor(w, event.KindAggregates, n+3, func(*event.Aggregates) bool { return true })
			sum := 0.0
			for _, e := range w.log.OfKind(event.KindAggregates) {
				sum += e.Data.(*event.Aggregates).Generated.V
			}
			if want := float64(tokens.Load() - first); sum != want || failures.Load() < 3 {
				t.Errorf("the server counted %v tokens, reported %v", want, sum)
			}
			for _, e := range w.log.OfKind(event.KindEngine)[before:] {
				if link := e.Data.(*event.EngineInfo).Remote.Link; link != event.LinkConnected {
					t.Errorf("link %v", link)
				}
			}
			gone.Store(true)
			w.waitForLink(event.LinkDisconnected, "", before)
		})
	}
}
