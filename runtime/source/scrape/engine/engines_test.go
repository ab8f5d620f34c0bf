package engine

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// metricsOf returns the sample metrics of an engine.
func metricsOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../gather/testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var counter = regexp.MustCompile(`(?m)^([\w:]+(?:_bucket|_sum|_count|_total|_success|_failure|_succeeded|_failed)(?:\{.*\})?) (\S+)$`)

// multiplyCounters returns metrics text with all counters multiplied by n.
func multiplyCounters(n float64, text string) string {
	return counter.ReplaceAllStringFunc(text, func(line string) string {
		m := counter.FindStringSubmatch(line)
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil || strings.Contains(m[1], "pending_request_count") {
			return line
		}
		return m[1] + " " + strconv.FormatFloat(n*v, 'f', -1, 64)
	})
}

// describe lists the readings of a report by origin. Rates depend on timing: only their names are listed.
func describe(p *event.Aggregates) string {
	by := map[event.Origin][]string{}
	for _, n := range []event.NamedReading{
		{Name: "running", Reading: p.Running},
		{Name: "waiting", Reading: p.Waiting},
		{Name: "decode", Reading: p.Decode},
		{Name: "prefill", Reading: p.Prefill},
		{Name: "kv", Reading: p.KVUsage},
		{Name: "used", Reading: p.KVUsed},
		{Name: "total", Reading: p.KVTotal},
		{Name: "hits", Reading: p.CacheHits},
		{Name: "finished", Reading: p.Finished},
		{Name: "failed", Reading: p.Failed},
		{Name: "in", Reading: p.Prompt},
		{Name: "cached", Reading: p.Cached},
		{Name: "out", Reading: p.Generated},
	} {
		words := n.Name
		if n.OK() && n.Name != "decode" && n.Name != "prefill" {
			words += fmt.Sprintf(" %.6g", n.V)
		}
		by[n.Origin] = append(by[n.Origin], words)
	}
	var out strings.Builder
	for _, from := range []event.Origin{event.Measured, event.Reported, event.Derived, event.NotYet, event.NotReported} {
		if len(by[from]) > 0 {
			fmt.Fprintf(&out, "%v: %s\n", from, strings.Join(by[from], ", "))
		}
	}
	for _, t := range p.Histograms {
		fmt.Fprintf(&out, "%s: %d of %.4g ms\n", t.Name, t.Count, float64(t.Sum)/1e6/math.Max(float64(t.Count), 1))
	}
	return out.String()
}

// metricsEngine is an engine with metrics: its responses, and the report expected after its counters have doubled.
type metricsEngine struct {
	name, version, model string
	path                 string // of the metrics
	metrics              string // name of the sample
	pages                map[string]string
	want                 string
}

var metricsEngines = []metricsEngine{
	{"vLLM", "0.22.0", "Qwen/Qwen3-30B-A3B", "/metrics", "vllm", map[string]string{"/v1/models": modelList("vllm"), "/version": `{"version":"0.22.0"}`}, `reported: running 7, waiting 3, kv 0.4271, total 437008
derived: decode, prefill, used 186646, hits 0.440735, finished 127, failed 0, in 91234, cached 40210, out 20480
ttft: 128 of 211 ms
itl: 2000 of 20.96 ms
tpot: 128 of 20.17 ms
e2el: 128 of 3382 ms
queue: 128 of 32.3 ms
prefill: 128 of 177.3 ms
decode: 128 of 2826 ms
inference: 128 of 2866 ms
`},
	{"SGLang", "0.5.17", "Qwen/Qwen3-30B-A3B", "/metrics", "sglang", map[string]string{
		"/v1/models": modelList("sglang"), "/server_info": `{"model_path":"q","tp_size":1,"version":"0.5.17","enable_metrics":true}`,
	}, `reported: running 6, waiting 2, kv 0.41, used 167936, total 409600
derived: decode, prefill, hits 0.440735, finished 128, in 91234, cached 40210, out 20480
not reported: failed
ttft: 128 of 211.2 ms
itl: 2000 of 14.03 ms
e2el: 128 of 3126 ms
queue: 120 of 22.41 ms
prefill: 120 of 176.7 ms
`},
	{"TGI", "3.3.7", "org/model", "/metrics", "tgi", map[string]string{
		"/info": `{"model_id":"org/model","version":"3.3.7","router":"text-generation-router","max_total_tokens":4096}`,
	}, `reported: running 5, waiting 1
derived: decode, finished 137, failed 6, in 52000, out 11000
not reported: prefill, kv, used, total, hits, cached
time_per_token: 137 of 22.11 ms
e2el: 137 of 2649 ms
queue: 137 of 19.06 ms
inference: 137 of 2600 ms
batch_prefill: 300 of 124.9 ms
batch_decode: 300 of 20.67 ms
`},
	{"TensorRT-LLM", "1.2.0", "m", "/prometheus/metrics", "tensorrt", map[string]string{"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.2.0"}`}, `reported: running 3, waiting 0, kv 0.12, hits 0.3
derived: decode, used 388823, total 3.24019e+06, finished 12, in 9000, out 4100
not reported: prefill, failed, cached
ttft: 12 of 236 ms
tpot: 12 of 14.55 ms
`},
	{"LMDeploy", "", "internlm3-8b", "/metrics", "lmdeploy", map[string]string{"/v1/models": modelList("lmdeploy")}, `reported: running 9, waiting 2, kv 0.25, hits 0.5
derived: decode, finished 64, failed 1, in 32000, out 12800
not reported: prefill, used, total, cached
ttft: 64 of 250 ms
itl: 12736 of 20 ms
tpot: 64 of 20 ms
e2el: 64 of 4000 ms
queue: 64 of 50 ms
prefill: 64 of 200 ms
decode: 64 of 3750 ms
inference: 64 of 3950 ms
`},
	{"Dynamo", "", "qwen3", "/metrics", "dynamo", map[string]string{"/v1/models": modelList("nvidia")}, `reported: waiting 2
derived: running 5, finished 128
not reported: decode, prefill, kv, used, total, hits, failed, in, cached, out
ttft: 128 of 222 ms
itl: 500 of 18.74 ms
`},
	{"Triton", "2.60.0", "tensorrt_llm", "/metrics", "triton", map[string]string{"/v2": `{"name":"triton","version":"2.60.0"}`}, `reported: running 5, waiting 4, kv 0.25
derived: used 96000, total 384000, finished 90, failed 1
not reported: decode, prefill, hits, in, cached, out
`},
}

// TestEnginesWithMetrics polls each engine through work, slow and compressed responses, truncated ones, errors, and a
// restart. Expected values were computed by hand from the samples. Readings that the engine does not have are "not
// reported", and nothing counts twice.
func TestEnginesWithMetrics(t *testing.T) {
	for _, e := range metricsEngines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			text := metricsOf(t, e.metrics)
			e.pages[e.path] = text
			f := newFake(t, e.pages)
			w := startPoller(t, Options{Address: f.URL})
			first, n := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
			if strings.Contains(describe(first), "derived: decode") || first.Finished.Origin != event.NotYet {
				t.Errorf("the first report has increases:\n%s", describe(first))
			}
			about, _ := w.waitForLink(event.LinkConnected, "", 0)
			waitFor(w, event.KindModel, 0, func(m *event.Model) bool { return m.Name == e.model })
			if about.Name != e.name || about.Version != e.version || about.Caps != event.CapAggregates {
				t.Errorf("engine %+v", about)
			}
			f.setPage(e.path, multiplyCounters(2, text))
			p, n := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Finished.V > 0 })
			if got := describe(p); got != e.want {
				t.Errorf("after the same work again\n%swant\n%s", got, e.want)
			}
			if seconds := float64(p.Interval) / 1e9; p.Generated.V > 0 && math.Abs(p.Decode.V*seconds-p.Generated.V) > 0.01 {
				t.Errorf("%v tokens in %v s are %v tokens/s", p.Generated.V, seconds, p.Decode.V)
			}
			checkRecovery(t, e, f, w, multiplyCounters(2, text))
			f.setPage(e.path, multiplyCounters(3, text))
			finished := p.Finished.V
			p, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Finished.V > 0 })
			if p.Finished.V != finished {
				t.Errorf("%v finished requests, want %v", p.Finished.V, finished)
			}
			f.setPage(e.path, text)
			p, _ = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Finished.V > 0 })
			again, _ := waitFor(w, event.KindEngine, 0, func(a *event.EngineInfo) bool { return a.Remote.Restarts > 0 })
			if p.Finished.V != finished || again.Remote.Restarts != 1 {
				t.Errorf("after a restart: %v finished requests, want %v; %d restarts", p.Finished.V, finished, again.Remote.Restarts)
			}
			if e.path != "/metrics" && f.requestCount("/metrics") > 0 {
				t.Error("data that is returned only once was read")
			}
		})
	}
}

// checkRecovery makes the server respond badly or slowly while its metrics stay the same.
func checkRecovery(t *testing.T, e metricsEngine, f *fake, w *runningPoller, text string) {
	t.Helper()
	from := len(w.log.OfKind(event.KindEngine))
	for _, c := range []struct {
		name, why string // why "": it stays connected
		serve     http.HandlerFunc
	}{
		{"slow", "", func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(text); i += 1 + len(text)/5 {
				_, _ = io.WriteString(w, text[i:min(i+1+len(text)/5, len(text))])
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		}},
		{"compressed", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(compress([]byte(text)))
		}},
		{"half a body", "truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = io.WriteString(w, text[:len(text)/2])
		}},
		{"half a compressed body", "truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			all := compress([]byte(text))
			_, _ = w.Write(all[:len(all)/2])
		}},
		{"key required", "API key required", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		{"500", "", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "out of memory", http.StatusInternalServerError)
		}},
	} {
		reports := len(w.log.OfKind(event.KindAggregates))
		f.setHandler(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == e.path {
				c.serve(w, r)
				return
			}
			f.servePage(w, r)
		})
		if c.why != "" || c.name == "500" {
			_, from = w.waitForLink(event.LinkDisconnected, c.why, from)
			f.setHandler(nil)
			_, from = w.waitForLink(event.LinkConnected, "", from)
			reports = len(w.log.OfKind(event.KindAggregates))
		}
		p, _ := waitFor(w, event.KindAggregates, reports+1, func(*event.Aggregates) bool { return true })
		if p.Finished.V != 0 || p.Generated.OK() && p.Generated.V != 0 {
			t.Errorf("%s: increases were reported twice:\n%s", c.name, describe(p))
		}
		f.setHandler(nil)
	}
}

func compress(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	_ = w.Close()
	return out.Bytes()
}
