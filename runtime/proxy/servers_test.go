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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/peer"
)

// spoken is what a server says of its own answer in the last message of it.
type spoken struct {
	prompt, generated int
	fill, decode      float64 // ns: for the prompt, and from the first token to the last
	first             float64 // ns: until the first token
}

// tpot is the mean gap, in ns.
func (s spoken) tpot() float64 { return s.decode / float64(s.generated-1) }

// real is a server that is not made for a test, with the way in which it is asked and tells of itself.
type real struct {
	name  string
	path  string
	start func(testing.TB) *peer.Process
	said  func(last string) (spoken, error)
}

var reals = []real{
	{
		name: "llama-server", path: "/v1/completions",
		start: func(tb testing.TB) *peer.Process {
			return peer.LlamaServer(tb, "", "--parallel", "1", "--ctx-size", "1024", "--threads", "1")
		},
		said: func(last string) (spoken, error) {
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
		said: func(last string) (spoken, error) {
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

// trio has llmtop's client make requests through the proxy on a real server: three that measure the same.
type trio struct {
	*rig
	real
	client *api.Client
	own    *memory // what the client has told
	plain  *http.Client
	server string
}

func newTrio(tb testing.TB, kind real) *trio {
	t := &trio{rig: &rig{memory: new(memory), clock: runtime.NewClock(), tap: new(peer.Tap)}, real: kind, own: new(memory)}
	t.server = kind.start(tb).URL
	t.plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}} // as a proxy of llama-server does
	t.front(tb, t.server)
	var err error
	if t.client, err = api.Dial(tb.Context(), api.Options{Address: t.proxy.Address(), Clock: t.clock}); err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = t.client.Run(ctx, t.own) }) // ends with ctx
	tb.Cleanup(func() { stop(); running.Wait() })
	t.ask(tb, 1) // loads the model
	return t
}

// ask makes a request and returns what the three say of it.
func (t *trio) ask(tb testing.TB, tokens int) (client, proxy *told, server spoken) {
	tb.Helper()
	before := len(t.requests())
	handle, err := t.client.Submit(runtime.Request{Text: "Call me Ishmael. Some years ago, never mind how long precisely,", MaxTokens: tokens, IgnoreEOS: true, Fresh: true})
	if err != nil {
		tb.Fatal(err)
	}
	if result := handle.Result(); result.State != event.StateFinished {
		tb.Fatalf("the request ended as %v", result)
	}
	await(tb, "all three are done", func() bool {
		n := before + 1
		return len(t.requests()) == n && len(t.own.requests()) == n && len(t.tap.Of(t.path)) == n
	})
	messages := t.tap.Of(t.path)[before].Messages()
	for i := len(messages) - 1; i >= 0 && server.generated == 0; i-- { // behind the last message may be [DONE]
		server, _ = t.said(messages[i].Text)
	}
	if server.generated == 0 {
		tb.Fatalf("%s told nothing of its answer: %v", t.name, messages)
	}
	return t.own.requests()[before], t.requests()[before], server
}

// bare makes the last request once more without anybody between, and returns by how many ns its answer begins later for a client than by its own words: what it does not count.
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
	var said spoken
	for line := range strings.Lines(string(first[:n]) + string(rest)) {
		if s, err := t.said(strings.TrimPrefix(line, "data: ")); err == nil && s.generated > 0 {
			said = s
		}
	}
	return float64(took) - said.first
}

// differences of the three: medians over requests.
type differences struct {
	bareTTFT              float64 // µs: of an answer without a proxy above the server's
	proxyTTFT, clientTTFT float64 // µs: above the server's, and above the proxy's
	proxyTPOT, clientTPOT float64 // per cent apart from the server's, and from the proxy's
}

// compare makes requests and says how far apart the three are. What cannot be otherwise, whatever the machine does meanwhile, must be so.
func (t *trio) compare(tb testing.TB, requests, tokens int) differences {
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
	mid := requests / 2
	return differences{all[4][mid], all[0][mid], all[1][mid], all[2][mid], all[3][mid]}
}

// TestServersAgree: the proxy, llmtop's own client behind it and the server itself say the same of the same requests. How near their clocks
// are is said by BenchmarkServersAgree; here a busy machine gets several chances to let them be near at all.
func TestServersAgree(t *testing.T) {
	for _, kind := range reals {
		t.Run(kind.name, func(t *testing.T) {
			three := newTrio(t, kind)
			const rounds = 6
			for round := 1; ; round++ {
				d := three.compare(t, 7, 64)
				t.Logf("round %d: medians %+v", round, d)
				if math.Abs(d.proxyTTFT) < 20e3 && d.clientTTFT < 20e3 && d.proxyTPOT < 10 && d.clientTPOT < 10 {
					return
				}
				if round == rounds {
					t.Fatalf("in %d rounds they were never within 20 ms and 10 %%", rounds)
				}
			}
		})
	}
}

// BenchmarkServersAgree is how far apart the three are, at the median: TTFT in µs, TPOT in per cent. What a server says of itself begins when it begins to
// work on the prompt and leaves out that a request is read and queued and that the first token is written: by how much is measured in turns without a proxy.
func BenchmarkServersAgree(b *testing.B) {
	for _, kind := range reals {
		b.Run(kind.name, func(b *testing.B) {
			three := newTrio(b, kind)
			var d differences
			for b.Loop() {
				d = three.compare(b, 41, 128)
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
