package fleet

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestRenamedMetrics: a Prometheus has metrics under the names that its collectors give them.
func TestRenamedMetrics(t *testing.T) {
	for _, c := range []struct {
		running, tokens, engine, shown string
		other                          string // another metric of the target
	}{
		{"kserve_vllm:num_requests_running", "kserve_vllm:generation_tokens_total", "vLLM", " (kserve_vllm:*)", "http_requests_total"},
		{"ray_sglang_num_running_reqs", "ray_sglang_generation_tokens_total", "SGLang", " (ray_sglang_*)", "acme_total"},
		{"vllm.num_requests_running", "vllm.generation_tokens_total", "vLLM", " (vllm.*)", ""},
		{"num_requests_running", "generation_tokens_total", "vLLM", " (without a prefix)", "time_to_first_token_seconds_sum"},
		{"vllm:num_requests_running", "vllm:generation_tokens_total", "vLLM", "", "num_requests_running"},
	} {
		t.Run(c.running, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.handler = func(w http.ResponseWriter, r *http.Request) {
				f.mu.Lock()
				defer f.mu.Unlock()
				at, query, out := f.now, r.URL.Query().Get("query"), []string(nil)
				if text := r.URL.Query().Get("time"); text != "" {
					_, _ = fmt.Sscan(text, &at)
				}
				add := func(name string, v float64) {
					out = append(out, fmt.Sprintf(`{"metric":{%s"instance":"gpu1:8000","job":"llm"},"value":[%f,"%f"]}`, name, at, v))
				}
				named := func(name string) string { return fmt.Sprintf(`"__name__":%q,`, name) }
				switch {
				case strings.HasPrefix(query, "up{"):
					add(named("up"), 1)
				case strings.HasPrefix(query, "timestamp("):
					add("", lastScrape(at))
				case strings.Contains(query, "__name__=~"):
					quoted, _ := strconv.QuotedPrefix(query[strings.Index(query, "=~")+2:])
					pattern, _ := strconv.Unquote(quoted)
					for name, v := range map[string]float64{c.running: 6, c.tokens: 20 * (lastScrape(at) - 1.6e9), c.other: 1} {
						if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(name) {
							add(named(name), v)
						}
					}
				}
				_, _ = io.WriteString(w, vector(out...))
			}
			r := startPoller(t, Options{Address: f.URL}).waitForReplica("gpu1:8000")
			r.waitFor(event.KindAggregates, func(p any) bool {
				a := p.(*event.Aggregates)
				named := len(a.Endpoints) == 1 && a.Endpoints[0].Name == "target gpu1:8000"+c.shown || len(a.Endpoints) == 0 && c.shown == ""
				return a.Running.V == 6 && a.Decode.V == 20 && named
			})
			r.waitFor(event.KindEngine, func(e any) bool { return e.(*event.EngineInfo).Name == c.engine })
		})
	}
}
