package tap

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// BenchmarkFile measures a file with 50 streams at once of 400 tokens, each in its own segment, of the usual size.
func BenchmarkFile(b *testing.B) {
	const streams, tokens = 50, 400
	var file bytes.Buffer
	r := record(b, &file)
	message := chunk(strings.Replace(word(" and"), `"model":"m"`, `"created":1741000000,"model":"Qwen/Qwen3-30B-A3B","system_fingerprint":"fp_0123456789"`, 1))
	for range streams {
		steps := []step{client(1, post(chat, `{"model":"m"}`)), server(2, chunkedHead(sse))}
		for i := range tokens {
			steps = append(steps, server(3+20*i, message))
		}
		r.dialogue(b, append(steps, server(9000, chunk(stops)+chunk(usage(5, tokens))+chunk(done)+last), step{at: 9001, does: "closed"}))
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		tap, err := New(Options{From: bytes.NewReader(file.Bytes())})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := tap.Run(b.Context(), event.SinkFunc(func(e event.Event) {
			if e.Kind == event.KindToken {
				n += int(e.N)
			}
		})); err != nil || n != streams*tokens {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*tokens), "ns/token")
}

// BenchmarkOpen measures the memory of 10,000 connections with a stream each.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		tap, _ := newTap(b, Options{Port: 8000})
		tap.sink = event.SinkFunc(func(event.Event) {})
		tap.server.Start(tap.sink, event.EngineInfo{})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var open []capture.Listener
		for range 10_000 {
			c := tap.open(flow())
			play(c, []step{client(1, post(chat, `{"model":"m"}`)), server(2, chunkedHead(sse)+chunk(word("a"))), server(3, chunk(word("b")))}, whole)
			open = append(open, c)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/1e6, "MB")
		for _, c := range open {
			c.End(began.Add(time.Second), capture.Closed)
		}
	}
}
