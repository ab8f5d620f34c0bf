package proxy

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// BenchmarkRouted measures what the proxy adds until the last byte of an answer with the expert picks of 1,024 prompt
// tokens and 128 generated tokens, 48 layers with 8 picks each: 2.4 MB. It reports medians in µs and compares with the
// same answer whose picks are in an unknown field, and with the server itself, alternately.
func BenchmarkRouted(b *testing.B) {
	const prompt, generated, layers, used = 1024, 128, 48, 8
	picks := make([]byte, (prompt+generated-1)*layers*used*4)
	for i := range len(picks) / 4 { // different ones of 128 in each row
		picks[4*i] = byte(rand.N(128/used) + i%used*(128/used))
	}
	body := fmt.Sprintf(`{"object":"chat.completion","choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}],`+
		`"sglext":{"routed_experts":%q},"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, base64.StdEncoding.EncodeToString(picks), prompt, generated)
	unknown := strings.Replace(body, "routed_experts", "unknown_things", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.RawQuery == "unknown" {
			_, _ = io.WriteString(w, unknown)
		} else {
			_, _ = io.WriteString(w, body)
		}
	}))
	defer server.Close()
	seen := new(memory)
	r := &rig{memory: seen, clock: engine.NewClock()}
	r.front(b, server.URL, func(o *Options) { o.ExpertsUsed = used })
	defer r.stop()
	ask := func(at string) time.Duration {
		began := time.Now()
		res, err := r.client.Post(at, "application/json", strings.NewReader(`{"model":"m","messages":[]}`))
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if n, err := io.Copy(io.Discard, res.Body); err != nil || n < int64(len(picks)) {
			b.Fatal(n, err)
		}
		return time.Since(began)
	}
	ways := []string{server.URL + chat, r.proxy.Address() + chat + "?unknown", r.proxy.Address() + chat}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, at := range ways {
			took[i] = append(took[i], ask(at))
		}
		counted := len(took[0])
		eventtest.Wait(b, "the picks are counted", func() bool { return len(seen.OfKind(event.KindExperts)) == counted }) // before the next one is timed
	}
	for i := range took {
		slices.Sort(took[i])
	}
	mid := len(took[0]) / 2
	added := func(i int) float64 { return float64((took[i][mid] - took[0][mid]).Nanoseconds()) / 1e3 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[0][mid].Nanoseconds())/1e3, "direct-µs")
	b.ReportMetric(added(1), "added-unknown-µs")
	b.ReportMetric(added(2), "added-routed-µs")
}
