package engine

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestTensorRTRanks: ranks with requests of their own are summed up, ranks that repeat each other are one, and an iteration
// counts once, in whatever order and answer the records of its ranks come. What the server kept from before does not count.
func TestTensorRTRanks(t *testing.T) {
	const record = `{%s,"iter":%d,"iterLatencyMS":12,"numActiveRequests":%d,"kvCacheStats":{"usedNumBlocks":%d,"maxNumBlocks":1000,"tokensPerBlock":32,"cacheHitRate":0.5}}`
	for _, c := range []struct {
		label          string
		active, used   int // of the second rank; of the first one 5 and 100
		running, usage float64
	}{
		{`"attentionDpRank":%d`, 3, 900, 8, 0.5},
		{`"attentionDpRank":%d`, 5, 100, 10, 0.1},
		{`"rank":%d`, 3, 900, 8, 0.5},
		{`"rank":%d`, 5, 100, 5, 0.1},
	} {
		of := [][2]int{{5, 100}, {c.active, c.used}}
		one := func(rank, n int) string {
			return fmt.Sprintf(record, fmt.Sprintf(c.label, rank), n, of[rank][0], of[rank][1])
		}
		var answers atomic.Int32
		f := newFake(t, map[string]string{"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.3.0"}`})
		f.setHandler(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics" {
				f.servePage(w, r)
				return
			}
			records := []string(nil)
			switch n := int(answers.Add(1)); n {
			case 1:
				for i := range 40 {
					records = append(records, one(0, i), one(1, i))
				}
			case 2: // rank by rank, without the second rank's last one
				records = []string{one(0, 40), one(0, 41), one(0, 42), one(1, 40), one(1, 41)}
			case 3:
				records = []string{one(1, 42), one(1, 43), one(0, 43)}
			case 4: // after a restart
				records = []string{one(0, 0), one(1, 0), one(0, 1), one(1, 1)}
			}
			_, _ = io.WriteString(w, "["+strings.Join(records, ",")+"]")
		})
		w := startPoller(t, Options{Address: f.URL, Drain: true})
		for i, want := range []uint64{0, 3, 1, 2} {
			p, _ := waitFor(w, event.KindAggregates, i, func(*event.Aggregates) bool { return true })
			if p.Running.V != c.running || p.KVUsage.V != c.usage || p.Histograms[0].Count != want {
				t.Errorf("%+v, answer %d: %v running, usage %v, %d iterations, want %d", c, i, p.Running, p.KVUsage, p.Histograms[0].Count, want)
			}
		}
	}
}

// TestSGLangLoadsOfRanks: ranks that share the work of another one repeat its load.
func TestSGLangLoadsOfRanks(t *testing.T) {
	one := func(rank, running int) string {
		return fmt.Sprintf(`{"dp_rank":%d,"num_running_reqs":%d,"token_usage":0.%d}`, rank, running, running)
	}
	f := newFake(t, map[string]string{
		"/v1/models": modelList("sglang"), "/v1/loads?include=core": `{"loads":[` + strings.Join([]string{one(0, 5), one(0, 5), one(1, 3), one(1, 3)}, ",") + `]}`,
		"/server_info": `{"version":"0.5.17","enable_metrics":false}`,
	})
	w := startPoller(t, Options{Address: f.URL})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if p.Running.V != 8 || p.KVUsage.V != 0.4 {
		t.Errorf("%v running, usage %v; want 8 and 0.4", p.Running, p.KVUsage)
	}
	if r := p.Ranks; len(r) != 2 || r[0].Running.V != 5 || r[1].Name != "1" || r[1].KVUsage.V != 0.3 || r[1].Waiting.OK() {
		t.Errorf("ranks %+v", r)
	}
}

// TestIdleLoads: an idle rank keeps the rate and the cache hits of its last batch, which do not count.
func TestIdleLoads(t *testing.T) {
	one := func(rank, running int, rate, hits float64) string {
		return fmt.Sprintf(`{"dp_rank":%d,"num_running_reqs":%d,"gen_throughput":%v,"cache_hit_rate":%v,"token_usage":0}`, rank, running, rate, hits)
	}
	const none = -1
	for _, c := range []struct {
		loads        []string
		decode, hits float64
	}{
		{[]string{one(0, 0, 66, 0.9), one(1, 4, 31, 0.25), one(2, 0, 0, 0)}, 31, 0.25},
		{[]string{one(0, 0, 66, 0.9), one(1, 0, 31, 0.25)}, 0, none},
		{[]string{one(0, 1, 66, 0.5), one(1, 2, 31, 0)}, 97, 0.25},
	} {
		f := newFake(t, map[string]string{
			"/v1/models": modelList("sglang"), "/v1/loads?include=core": `{"loads":[` + strings.Join(c.loads, ",") + `]}`,
			"/server_info": `{"version":"0.5.17","enable_metrics":false}`,
		})
		w := startPoller(t, Options{Address: f.URL})
		p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
		if p.Decode.V != c.decode || p.CacheHits.OK() != (c.hits != none) || p.CacheHits.OK() && p.CacheHits.V != c.hits || p.KVUsage.V != 0 {
			t.Errorf("%v: %v tokens/s, hits %v", c.loads, p.Decode, p.CacheHits)
		}
	}
}

// TestIdleTensorRTRank: a rank that has looked nothing up does not lower the share of cache hits.
func TestIdleTensorRTRank(t *testing.T) {
	const record = `{"attentionDpRank":%d,"iter":1,"numActiveRequests":%d,"kvCacheStats":{"usedNumBlocks":1,"maxNumBlocks":100,"tokensPerBlock":32,"cacheHitRate":%v}}`
	f := newFake(t, map[string]string{
		"/v1/models": modelList("tensorrt_llm"), "/version": `{"version":"1.3.0"}`,
		"/metrics": "[" + fmt.Sprintf(record, 0, 6, 0.75) + "," + fmt.Sprintf(record, 1, 0, 0.0) + "," + fmt.Sprintf(record, 2, 1, 0.25) + "]",
	})
	w := startPoller(t, Options{Address: f.URL, Drain: true})
	p, _ := waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
	if p.CacheHits.V != 0.5 || p.Running.V != 7 {
		t.Errorf("hits %v of %v requests, want 0.5 of 7", p.CacheHits, p.Running)
	}
}

// TestBalancedAddress: of several processes that answer in turn nothing is reported but the reason, from no endpoint.
func TestBalancedAddress(t *testing.T) {
	for kind, pages := range map[string]map[string]string{
		"vllm":     {"/v1/models": modelList("vllm"), "/version": `{"version":"0.14.0"}`, "/load": `{"server_load":3}`},
		"sglang":   {"/v1/models": modelList("sglang"), "/server_info": `{"version":"0.5.17","enable_metrics":true}`, "/v1/loads?include=core": `{"loads":[{"dp_rank":0,"num_running_reqs":5}]}`},
		"llamacpp": {"/props": sampleOf(t, "llamacpp_props.json"), "/slots": sampleOf(t, "llamacpp_slots.json")},
	} {
		prefix := map[string]string{"vllm": "vllm:", "sglang": "sglang:", "llamacpp": "llamacpp:"}[kind]
		generated := map[string]string{"vllm": "generation_tokens", "sglang": "generation_tokens", "llamacpp": "tokens_predicted"}[kind]
		running := map[string]string{"vllm": "num_requests_running", "sglang": "num_running_reqs", "llamacpp": "requests_processing"}[kind]
		pages["/metrics"] = "-"
		f, answers := newFake(t, pages), 0
		f.handler = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics" {
				f.servePage(w, r)
				return
			}
			answers++
			_, _ = fmt.Fprintf(w, "%[1]s%[2]s 3\n%[1]s%[3]s_total %[4]d\n", prefix, running, generated, answers%2*900_000+answers)
		}
		w := startPoller(t, Options{Address: f.URL, Interval: 20 * time.Millisecond})
		_, n := waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool { return p.Void })
		p, _ := waitFor(w, event.KindAggregates, n, func(*event.Aggregates) bool { return true })
		if p.Void || p.Running.OK() || p.Generated.OK() || p.Decode.OK() || len(p.Slots) > 0 {
			t.Errorf("%s: %+v", kind, p)
		}
		for _, e := range p.Endpoints {
			if !strings.Contains(e.Reason, "several processes answer") {
				t.Errorf("%s: endpoint %+v", kind, e)
			}
		}
		if e, _ := w.waitForLink(event.LinkConnected, "", 0); e.Remote.Restarts > 1 {
			t.Errorf("%s: %d restarts", kind, e.Remote.Restarts)
		}
	}
}
