package sdk

import (
	"fmt"
	"slices"
	"testing"
)

// measured are the kinds of events, see testdata/bench.rs; "nothing" is a reading of the clock, which every event
// includes.
var measured = []string{"nothing", "token", "rich", "batch", "threads", "span", "encode_stream_next", "cache_lookup", "step", "picks"}

// measureRounds makes the program emit some rounds of a kind of event.
func (m *meter) measureRounds(b *testing.B, kind string) {
	b.Helper()
	var ns float64
	var dropped int
	if _, err := fmt.Fprintf(m.in, "%s 3\n", kind); err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fscan(m.out, &ns, &dropped); err != nil {
		b.Fatal(err)
	}
	if dropped > 0 {
		b.Errorf("the ring dropped %d events: the results are too low", dropped)
	}
	m.ns[kind] = append(m.ns[kind], ns)
}

// BenchmarkRust measures the cost of an event for a thread of an engine in Rust: without a reader, with the client of
// llmtop, and with a stalled reader. All alternate; the results are medians of 20.
func BenchmarkRust(b *testing.B) {
	binary := buildRust(b, "rust/testdata/bench.rs", "-O")
	readers := []string{"absent", "attached", "stalled"}
	meters := map[string]*meter{}
	for _, reader := range readers {
		meters[reader] = startMeter(b, binary)
	}
	meters["attached"].attach(b)
	Connect(b, meters["stalled"].address, check).Read("synced")
	for b.Loop() {
		for range 20 {
			for _, kind := range measured {
				for _, reader := range readers {
					meters[reader].measureRounds(b, kind)
				}
			}
		}
	}
	for _, reader := range readers {
		for _, kind := range measured {
			ns := slices.Sorted(slices.Values(meters[reader].ns[kind]))
			b.ReportMetric(ns[len(ns)/2], "ns/"+kind+"-"+reader)
		}
	}
}
