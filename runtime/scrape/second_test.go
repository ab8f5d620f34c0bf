package scrape

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

// askedTwice is a server whose metrics are not all that it is asked for at each look.
type askedTwice struct {
	name            string
	metrics, second string // paths
	text            string // metrics, with a counter of tokens
	pages           map[string]string
}

func serversAskedTwice(t *testing.T) []askedTwice {
	return []askedTwice{
		{"SGLang", "/metrics", "/v1/loads", "sglang:num_running_reqs 1\nsglang:realtime_tokens_total{mode=\"decode\"} %d\n", map[string]string{
			"/v1/models": models("sglang"), "/server_info": `{"version":"0.5.17","enable_metrics":true}`, "/v1/loads": sampleOf(t, "sglang_v1_loads.json"),
		}},
		{"TensorRT-LLM", "/prometheus/metrics", "/metrics", "trtllm_num_requests_running 1\ntrtllm_generation_tokens_total %d\n", map[string]string{
			"/v1/models": models("tensorrt_llm"), "/version": `{"version":"1.2.0"}`, "/metrics": "[]",
		}},
		{"llama.cpp", "/metrics", "/slots", "llamacpp:requests_processing 1\nllamacpp:tokens_predicted_total %d\n", map[string]string{
			"/v1/models": models("llamacpp"), "/props": sampleOf(t, "llamacpp_props.json"), "/slots": `[{"id":0,"n_ctx":64,"is_processing":true,"id_task":1}]`,
		}},
	}
}

// TestNoTokenIsLostWhereASecondQuestionFails: what the metrics have told counts, once, whatever becomes of what is asked besides.
func TestNoTokenIsLostWhereASecondQuestionFails(t *testing.T) {
	for _, c := range serversAskedTwice(t) {
		t.Run(c.name, func(t *testing.T) {
			const first, step = 1000, 100
			var tokens, failures atomic.Int64
			var fails, still, gone atomic.Bool
			tokens.Store(first - step)
			f := newFake(t, maps.Clone(c.pages))
			f.answer(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case gone.Load():
					panic(http.ErrAbortHandler)
				case r.URL.Path == c.second && fails.Load():
					failures.Add(1)
					panic(http.ErrAbortHandler)
				case r.URL.Path != c.metrics:
					f.page(w, r)
				case still.Load():
					_, _ = io.WriteString(w, fmt.Sprintf(c.text, tokens.Load()))
				default:
					_, _ = io.WriteString(w, fmt.Sprintf(c.text, tokens.Add(step)))
				}
			})
			w := watchIt(t, Options{Address: f.URL, Drain: true})
			works := func(p *event.Report) bool {
				why, there := source(p, c.second)
				return there && why == ""
			}
			_, n := until(w, event.KindReport, 2, works)
			before := len(w.log.Of(event.KindEngine))
			fails.Store(true)
			for range 3 {
				_, n = until(w, event.KindReport, n, func(p *event.Report) bool {
					why, _ := source(p, c.second)
					return p.Running.OK() && strings.HasPrefix(why, "the server ")
				})
			}
			fails.Store(false)
			_, n = until(w, event.KindReport, n, works)
			still.Store(true)
			until(w, event.KindReport, n+3, func(*event.Report) bool { return true })
			sum := 0.0
			for _, e := range w.log.Of(event.KindReport) {
				sum += e.Data.(*event.Report).Generated.V
			}
			if want := float64(tokens.Load() - first); sum != want || failures.Load() < 3 {
				t.Errorf("the server has counted %v tokens, and %v were told", want, sum)
			}
			for _, e := range w.log.Of(event.KindEngine)[before:] {
				if link := e.Data.(*event.Engine).Remote.Link; link != event.LinkConnected {
					t.Errorf("it was told as %v", link)
				}
			}
			gone.Store(true)
			w.linked(event.LinkDisconnected, "", before)
		})
	}
}
