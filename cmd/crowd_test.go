package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/proxy"
)

// assembly is a server that starts to answer only when a number of requests wait concurrently.
type assembly struct {
	waiting chan struct{} // a token per waiting request
	full    chan struct{} // closed once enough requests wait
	tokens  int
}

func newAssembly(t *testing.T, streams, tokens int) string {
	t.Helper()
	a := &assembly{waiting: make(chan struct{}, streams-1), full: make(chan struct{}), tokens: tokens}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return s.URL
}

func (a *assembly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"someone"}]}`)
		return
	case "/v1/completions", "/v1/chat/completions":
	default:
		http.NotFound(w, r)
		return
	}
	var q struct {
		MaxTokens int `json:"max_tokens"`
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	if q.MaxTokens == a.tokens { // warm-up requests have fewer tokens
		a.gather()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range q.MaxTokens {
		fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\" word\",\"delta\":{\"content\":\" word\"}}],\"usage\":{\"completion_tokens\":%d}}\n\n", i+1)
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", q.MaxTokens)
}

// gather waits until enough requests wait.
func (a *assembly) gather() {
	select {
	case a.waiting <- struct{}{}:
		<-a.full
	case <-a.full:
	default:
		close(a.full)
	}
}

// TestBenchOfManyStreams checks that all of 400 concurrent requests finish with all their tokens.
func TestBenchOfManyStreams(t *testing.T) {
	const streams, tokens = 400, 8
	r, _ := bencher(t, newAssembly(t, streams, tokens), "--prompt-tokens", "8", "--concurrency", fmt.Sprint(streams), "--requests", fmt.Sprint(streams),
		"--repeats", "1", "--warmup", "0", "-n", fmt.Sprint(tokens))
	finished := 0
	for _, q := range r.Requests {
		if q.State == event.StateFinished.String() && q.Generated == tokens && q.E2EL.V > 0 && q.TTFT.V > 0 {
			finished++
		}
	}
	p := r.Bench.Points[0]
	if finished != streams || p.TTFT.Count != streams || p.Tokens.Requests != streams || p.Tokens.Generated != streams*tokens {
		t.Errorf("%d of %d finished, %d TTFT, tokens %+v", finished, streams, p.TTFT.Count, p.Tokens)
	}
	if want := float64(streams*tokens) / p.Runs[0].Duration.V; math.Abs(p.Output.Mean.V-want) > want/1000 {
		t.Errorf("%v tokens/s, want %v", p.Output.Mean.V, want)
	}
}

// TestProxyOfManyStreams checks that the proxy measures the latencies of all of 400 concurrent requests.
func TestProxyOfManyStreams(t *testing.T) {
	const streams, tokens = 400, 8
	clock := engine.NewClock()
	p, err := proxy.New(proxy.Options{To: newAssembly(t, streams, tokens), Listen: "127.0.0.1:0", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	kept := store.New(store.Options{Now: clock.Now})
	ctx, stop := context.WithCancel(t.Context())
	var running, all sync.WaitGroup
	running.Go(func() { _ = kept.Run(ctx) })
	running.Go(func() {
		if err := p.Run(ctx, kept); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: -1}}
	for range streams {
		all.Go(func() {
			res, err := client.Post(p.Address()+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"stream":true,"max_tokens":%d}`, tokens)))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	all.Wait()
	var s *store.Snapshot
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if s = kept.Snapshot(); s.Counts.Finished == streams {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not all have finished: %+v", s.Counts)
		}
	}
	l := &s.Latency
	if l.Of[store.E2EL][metric.Session].Count != streams || l.Of[store.TTFT][metric.Session].Count != streams || s.Counts.GeneratedTokens != streams*tokens || s.Drops.Total() != 0 {
		t.Errorf("%d E2EL, %d TTFT, counts %+v, dropped %v", l.Of[store.E2EL][metric.Session].Count, l.Of[store.TTFT][metric.Session].Count, s.Counts, s.Drops)
	}
}
