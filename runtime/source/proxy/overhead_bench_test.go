package proxy

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// delays are the waiting times of a client, with the same server, directly or through the proxy.
type delays struct {
	mu            sync.Mutex // guards the fields below
	first, tokens []time.Duration
}

// quantiles returns the median and the 99th percentile.
func quantiles(all []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}

// clockwork is a server that streams one token at a time, each with the time at which it was about to be written.
type clockwork struct {
	began  time.Time
	tokens int
	pace   time.Duration
}

const padding = `{"id":"chatcmpl-9f1c","object":"chat.completion.chunk","created":1787400000,"model":"Qwen/Qwen3-30B-A3B","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"at":`

func (c *clockwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", stream)
	for i := range c.tokens {
		if i > 0 {
			time.Sleep(c.pace/2 + rand.N(c.pace))
		}
		_, _ = fmt.Fprintf(w, "data: %s%d}\n\n", padding, time.Since(c.began))
		flush(w)
	}
	_, _ = io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// request makes one request and times it: the first byte from the start of the request, each later token from when the
// server wrote it.
func (c *clockwork) request(b *testing.B, client *http.Client, at string, into *delays) {
	began := time.Now()
	res, err := client.Post(at+chat, "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Call me Ishmael."}]}`))
	if err != nil {
		b.Error(err)
		return
	}
	defer res.Body.Close()
	var first time.Duration
	var tokens []time.Duration
	buffer := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buffer)
		now := time.Now()
		if err == nil && n > 0 && first == 0 {
			first = now.Sub(began)
		} else if _, stamp, ok := strings.Cut(string(buffer[:n]), `"at":`); ok {
			end := strings.IndexByte(stamp, '}')
			at, err := strconv.ParseInt(stamp[:max(end, 0)], 10, 64)
			if err != nil {
				b.Error(err)
			}
			tokens = append(tokens, now.Sub(c.began)-time.Duration(at))
		}
		if err != nil {
			break
		}
	}
	into.mu.Lock()
	defer into.mu.Unlock()
	into.first, into.tokens = append(into.first, first), append(into.tokens, tokens...)
}

// BenchmarkOverhead measures what the proxy adds to the first byte and to each token, in µs: the difference of the
// quantiles with and without the proxy, measured alternately. Client, proxy and server run in this process and share a
// clock.
func BenchmarkOverhead(b *testing.B) {
	for _, streams := range []int{1, 64} {
		b.Run(fmt.Sprintf("%dstreams", streams), func(b *testing.B) {
			c := &clockwork{began: time.Now(), tokens: 11, pace: 4 * time.Millisecond}
			each := 20
			if streams > 1 {
				c.pace, each = 20*time.Millisecond, 3
			}
			server := httptest.NewServer(c)
			defer server.Close()
			queue := event.NewQueue[event.Event](event.DefaultQueue)
			defer drained(queue)()
			r := &rig{sink: event.SinkFunc(func(e event.Event) { queue.Put(e, e.Kind) }), clock: engine.NewClock()}
			r.front(b, server.URL)
			defer r.stop()
			round := func(at string, into *delays) {
				var all sync.WaitGroup
				for range streams {
					all.Go(func() {
						time.Sleep(rand.N(c.pace * 4))
						for range each {
							c.request(b, r.client, at, into)
						}
					})
				}
				all.Wait()
			}
			for _, at := range []string{server.URL, r.proxy.Address()} { // open the connections
				round(at, new(delays))
			}
			var direct, through delays
			for b.Loop() {
				round(server.URL, &direct)
				round(r.proxy.Address(), &through)
			}
			b.ReportMetric(0, "ns/op")
			for _, m := range []struct {
				what            string
				direct, through []time.Duration
			}{{"first", direct.first, through.first}, {"token", direct.tokens, through.tokens}} {
				d50, d99 := quantiles(m.direct)
				t50, t99 := quantiles(m.through)
				b.ReportMetric(float64((t50-d50).Nanoseconds())/1e3, m.what+"-p50-µs")
				b.ReportMetric(float64((t99-d99).Nanoseconds())/1e3, m.what+"-p99-µs")
				b.Logf("%s: direct %v and %v, through the proxy %v and %v (p50, p99 of %d and %d)", m.what, d50, d99, t50, t99, len(m.direct), len(m.through))
			}
		})
	}
}

// BenchmarkAgreement makes requests with llmtop's own client through the proxy and compares both measurements of each:
// the median difference of client TTFT and proxy TTFT, in µs, and that of their TPOTs, in percent.
func BenchmarkAgreement(b *testing.B) {
	mux := http.NewServeMux()
	mux.Handle(chat, &clockwork{began: time.Now(), tokens: 51, pace: 10 * time.Millisecond})
	r := behind(b, mux)
	client, err := remote.Dial(b.Context(), remote.Options{Address: r.proxy.Address(), API: remote.OpenAIChat, Model: "m", Clock: r.clock})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	own := new(memory)
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx, own) }) // ends with ctx
	defer running.Wait()
	defer stop()
	for b.Loop() {
		handle, err := client.Submit(engine.Request{Text: "Call me Ishmael."})
		if err != nil {
			b.Fatal(err)
		}
		handle.Result()
	}
	eventtest.Wait(b, "all end", func() bool { return len(r.requests()) == b.N })
	var ttft, tpot []float64
	for i, there := range own.requests() {
		here := r.requests()[i]
		ttft = append(ttft, float64(there.ttft()-here.ttft())/1e3)
		tpot = append(tpot, 100*math.Abs(there.tpot()/here.tpot()-1))
	}
	slices.Sort(ttft)
	slices.Sort(tpot)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ttft[len(ttft)/2], "TTFT-p50-µs")
	b.ReportMetric(tpot[len(tpot)/2], "TPOT-p50-%")
	b.Logf("largest differences of %d requests: %.0f µs and %.2f %%", len(ttft), ttft[len(ttft)-1], tpot[len(tpot)-1])
}

func (r *loggedRequest) ttft() event.Time { return r.tokens[0].At - r.queued.At }

// tpot is the mean gap, in ns.
func (r *loggedRequest) tpot() float64 {
	return float64(r.tokens[len(r.tokens)-1].At-r.tokens[0].At) / float64(r.generated()-int(r.tokens[0].N))
}

// drained empties a queue as a store does.
func drained(q *event.Queue[event.Event]) (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		var batch []event.Event
		for {
			select {
			case <-end:
				return
			case <-q.HalfFull():
			case <-time.After(100 * time.Millisecond):
			}
			batch, _ = q.Swap(batch)
		}
	})
	return func() { close(end); done.Wait() }
}

// BenchmarkObserve measures the cost of observing an answer, per message. Forwarding does not wait for it.
func BenchmarkObserve(b *testing.B) {
	pieces := make([][]byte, 256)
	for i := range pieces {
		pieces[i] = fmt.Appendf(nil, "data: %s%d}\n\n", padding, i)
	}
	header := typed(stream, "")
	b.ReportAllocs()
	for b.Loop() {
		o, _ := observe(&answers.Dialects[0], http.StatusOK, header, pieces)
		if o.Counter.Total() != len(pieces) {
			b.Fatalf("%d tokens", o.Counter.Total())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pieces)), "ns/message")
}
