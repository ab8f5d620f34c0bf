package exposition

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// large returns an exporter of one engine with 94 layers of 256 experts, the size of large models: 48,128 series of
// picks.
func large() (*Exporter, *scenario) {
	x := New("1.0")
	p := addEngine(x, "native")
	p.emitEverything()
	p.emit(ms, routed(picks(94, 256, 1_000_003)))
	return x, p
}

// discard is an http.ResponseWriter that counts bytes.
type discard struct {
	header http.Header
	bytes  int64
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(b []byte) (int, error) {
	d.bytes += int64(len(b))
	return len(b), nil
}

// BenchmarkScrape measures a scrape after all pick counts have changed, in each format, and one of a small model.
func BenchmarkScrape(b *testing.B) {
	for name, accept := range map[string]string{
		"OpenMetrics": "application/openmetrics-text; version=1.0.0", "Text": "text/plain; version=0.0.4",
		"Protobuf": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
	} {
		b.Run(name, func(b *testing.B) {
			x, p := large()
			scrapes(b, x, p, accept, func() { p.emit(ms, routed(picks(94, 256, 1_000_003+uint64(p.now)))) })
		})
	}
	b.Run("Demo", func(b *testing.B) { // the shape of the built-in model
		x := New("1.0")
		p := addEngine(x, "native")
		p.emitEverything()
		scrapes(b, x, p, "application/openmetrics-text; version=1.0.0", func() { p.emit(ms, routed(picks(8, 16, 1_000_003+uint64(p.now)))) })
	})
}

func scrapes(b *testing.B, x *Exporter, p *scenario, accept string, change func()) {
	b.Helper()
	h := x.Handler("")
	r := httptest.NewRequest("GET", Path, nil)
	r.Header.Set("Accept", accept)
	w := &discard{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		change()
		p.store.Snapshot() // the screen takes 10 a second anyway
		b.StartTimer()
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(w.bytes)/float64(b.N)/1e6, "MB/scrape")
}

// BenchmarkPush measures gathering and encoding the same for a push.
func BenchmarkPush(b *testing.B) {
	x, p := large()
	instance := newInstance()
	p.store.Snapshot()
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		families, err := x.Gather()
		if err != nil {
			b.Fatal(err)
		}
		bytes = 0
		messages, err := encodeMetrics(families, time.Now(), "1.0", instance)
		if err != nil {
			b.Fatal(err)
		}
		for _, message := range messages {
			bytes += len(message)
		}
	}
	b.ReportMetric(float64(bytes)/1e6, "MB/push")
}

// BenchmarkGaps measures the cost of a token for the goroutine of the store.
func BenchmarkGaps(b *testing.B) {
	_, p := large()
	r := &store.Request{ID: 99}
	b.ReportAllocs()
	for b.Loop() {
		p.engine.Gaps(r, ms, 1)
	}
}

// BenchmarkEmitStage measures an event that the exporter ignores.
func BenchmarkEmitStage(b *testing.B) {
	_, p := large()
	e := event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: 99}
	b.ReportAllocs()
	for b.Loop() {
		p.engine.Emit(e)
	}
}
