package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// spoken holds a server's own measurements, from the last message of its answer.
type spoken struct {
	prompt, generated int
	fill, decode      float64 // ns: prefill; from the first token to the last
	first             float64 // ns: until the first token
}

// tpot returns the mean time per output token, in ns.
func (s spoken) tpot() float64 { return s.decode / float64(s.generated-1) }

// real is a real inference server: how to send it requests and how to read its measurements.
type real struct {
	name     string
	path     string
	start    func(testing.TB) *peer.Process
	measured func(last string) (spoken, error)
}

var reals = []real{
	{
		name: "llama-server", path: "/v1/completions",
		start: func(tb testing.TB) *peer.Process {
			return peer.LlamaServer(tb, "", "--parallel", "1", "--ctx-size", "1024", "--threads", "1")
		},
		measured: func(last string) (spoken, error) {
			var in struct {
				Timings struct {
					CacheN      int     `json:"cache_n"`
					PromptN     int     `json:"prompt_n"`
					PromptMS    float64 `json:"prompt_ms"`
					PredictedN  int     `json:"predicted_n"`
					PredictedMS float64 `json:"predicted_ms"`
				}
			}
			err := json.Unmarshal([]byte(last), &in)
			t := in.Timings
			return spoken{t.CacheN + t.PromptN, t.PredictedN, t.PromptMS * 1e6, t.PredictedMS * 1e6, t.PromptMS * 1e6}, err
		},
	},
	{
		name: "ollama", path: "/api/generate",
		start: func(tb testing.TB) *peer.Process { return peer.Ollama(tb) },
		measured: func(last string) (spoken, error) {
			var in struct {
				Prompt    int     `json:"prompt_eval_count"`
				Generated int     `json:"eval_count"`
				Fill      float64 `json:"prompt_eval_duration"`
				Decode    float64 `json:"eval_duration"`
				Total     float64 `json:"total_duration"`
			}
			err := json.Unmarshal([]byte(last), &in)
			return spoken{in.Prompt, in.Generated, in.Fill, in.Decode, in.Total - in.Decode}, err
		},
	},
}

// trio sends requests with llmtop's client through the proxy to a real server: three independent measurements.
type trio struct {
	*rig
	real
	client *remote.Client
	own    *memory // events of the client
	plain  *http.Client
	server string
}

func newTrio(tb testing.TB, kind real) *trio {
	t := &trio{rig: &rig{memory: new(memory), clock: engine.NewClock(), tap: new(peer.Tap)}, real: kind, own: new(memory)}
	t.server = kind.start(tb).URL
	t.plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}} // as a proxy in front of llama-server does
	t.front(tb, t.server)
	var err error
	if t.client, err = remote.Dial(tb.Context(), remote.Options{Address: t.proxy.Address(), Clock: t.clock}); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = t.client.Run(ctx, t.own) }) // ends with ctx
	tb.Cleanup(func() { stop(); running.Wait() })
	t.ask(tb, 1) // loads the model
	return t
}

// ask makes a request and returns the three measurements of it.
func (t *trio) ask(tb testing.TB, tokens int) (client, proxy *loggedRequest, server spoken) {
	tb.Helper()
	before := len(t.requests())
	handle, err := t.client.Submit(engine.Request{Text: "Call me Ishmael. Some years ago, never mind how long precisely,", MaxTokens: tokens, IgnoreEOS: true, Fresh: true})
	if err != nil {
		tb.Fatal(err)
	}
	if result := handle.Result(); result.State != event.StateFinished {
		tb.Fatalf("the request ended as %v", result)
	}
	eventtest.Wait(tb, "all three are done", func() bool {
		n := before + 1
		return len(t.requests()) == n && len(t.own.requests()) == n && len(t.tap.Of(t.path)) == n
	})
	messages := t.tap.Of(t.path)[before].Messages()
	for i := len(messages) - 1; i >= 0 && server.generated == 0; i-- { // the last message may be [DONE]
		server, _ = t.measured(messages[i].Text)
	}
	if server.generated == 0 {
		tb.Fatalf("%s reported nothing about its answer: %v", t.name, messages)
	}
	return t.own.requests()[before], t.requests()[before], server
}

// bare repeats the last request without the proxy and returns by how many ns the client's TTFT exceeds the server's
// own: the part that the server does not count.
func (t *trio) bare(tb testing.TB) float64 {
	tb.Helper()
	all := t.tap.Of(t.path)
	body := bytes.NewReader(all[len(all)-1].Asked)
	began := time.Now()
	res, err := t.plain.Post(t.server+t.path, "application/json", body)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 4096)
	n, err := res.Body.Read(first)
	took := time.Since(began)
	rest, restErr := io.ReadAll(res.Body)
	if err := errors.Join(err, restErr); err != nil {
		tb.Fatal(err)
	}
	var server spoken
	for line := range strings.Lines(string(first[:n]) + string(rest)) {
		if s, err := t.measured(strings.TrimPrefix(line, "data: ")); err == nil && s.generated > 0 {
			server = s
		}
	}
	return float64(took) - server.first
}

// differences of the three measurements.
type differences struct {
	bareTTFT              float64 // µs: client TTFT without a proxy minus the server's
	proxyTTFT, clientTTFT float64 // µs: proxy TTFT minus the server's, client TTFT minus the proxy's
	proxyTPOT, clientTPOT float64 // percent: proxy vs server, client vs proxy
}

// compare makes requests and returns the differences, of the requests at a rank from the smallest. It fails on what must
// hold on any machine, whatever its load.
func (t *trio) compare(tb testing.TB, requests, tokens, rank int) differences {
	tb.Helper()
	var all [5][]float64
	for range requests {
		client, proxy, server := t.ask(tb, tokens)
		all[4] = append(all[4], t.bare(tb)/1e3)
		if n := server.generated; proxy.generated() != n || client.generated() != n || proxy.outcome.Prompt != server.prompt || client.outcome.Prompt != server.prompt {
			tb.Errorf("prompt and output have %d and %d tokens for the server, %d and %d for the proxy, %d and %d for the client", server.prompt, n,
				proxy.outcome.Prompt, proxy.generated(), client.outcome.Prompt, client.generated())
		}
		if first := float64(proxy.ttft()); first < server.fill || client.ttft() < proxy.ttft() {
			tb.Errorf("TTFT is %v for the client, %v ns for the proxy, %v ns for the server", client.ttft(), first, server.fill)
		}
		for i, v := range []float64{
			(float64(proxy.ttft()) - server.first) / 1e3, float64(client.ttft()-proxy.ttft()) / 1e3,
			100 * math.Abs(proxy.tpot()/server.tpot()-1), 100 * math.Abs(client.tpot()/proxy.tpot()-1),
		} {
			all[i] = append(all[i], v)
		}
	}
	for i := range all {
		slices.Sort(all[i])
	}
	return differences{all[4][rank], all[0][rank], all[1][rank], all[2][rank], all[3][rank]}
}

// TestServersAgree: the proxy, llmtop's own client behind it and the server itself report the same for the same
// requests. BenchmarkServersAgree measures how close their times are; here, on a busy machine, those of the nearest of
// some requests are.
func TestServersAgree(t *testing.T) {
	for _, kind := range reals {
		t.Run(kind.name, func(t *testing.T) {
			d := newTrio(t, kind).compare(t, 7, 64, 0)
			t.Logf("nearest: %+v", d)
			if math.Abs(d.proxyTTFT) > 20e3 || d.clientTTFT > 20e3 || d.proxyTPOT > 10 || d.clientTPOT > 10 {
				t.Error("no request was within 20 ms and 10 %")
			}
		})
	}
}

// BenchmarkServersAgree measures the differences at the median: TTFT in µs, TPOT in percent. A server's own times start
// when it begins the prompt: they exclude reading and queueing the request and writing the first token. That part is
// measured alternately without the proxy.
func BenchmarkServersAgree(b *testing.B) {
	for _, kind := range reals {
		b.Run(kind.name, func(b *testing.B) {
			three := newTrio(b, kind)
			var d differences
			for b.Loop() {
				d = three.compare(b, 41, 128, 20)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(d.bareTTFT, "TTFT-bare-over-server-µs")
			b.ReportMetric(d.proxyTTFT, "TTFT-proxy-over-server-µs")
			b.ReportMetric(d.clientTTFT, "TTFT-client-over-proxy-µs")
			b.ReportMetric(d.proxyTPOT, "TPOT-proxy-to-server-%")
			b.ReportMetric(d.clientTPOT, "TPOT-client-to-proxy-%")
		})
	}
}
