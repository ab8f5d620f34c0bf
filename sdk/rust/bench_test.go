package rust

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
	"github.com/llmtop/llmtop/sdk/c/harness"
)

// measured are the kinds of events, see testdata/bench.rs; "nothing" is a reading of the clock, which every event
// includes.
var measured = []string{"nothing", "token", "rich", "batch", "threads", "span", "encode_stream_next", "cache_lookup", "step", "picks"}

// meter is a running testdata/bench.rs, with its results.
type meter struct {
	in      io.Writer
	out     *bufio.Reader
	address string
	ns      map[string][]float64
}

func startMeter(b *testing.B, binary string) *meter {
	b.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "ADDRESS=unix:"+harness.Socket(b))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // ends the program
		if err := cmd.Wait(); err != nil {
			b.Errorf("the program ended with %v", err)
		}
	})
	m := &meter{in: in, out: bufio.NewReader(out), ns: map[string][]float64{}}
	address, err := m.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	m.address = strings.TrimSpace(address)
	return m
}

// measure makes the program emit some rounds of a kind of event.
func (m *meter) measure(b *testing.B, kind string) {
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

// nowhere is a sink.
type nowhere struct{}

func (nowhere) Emit(event.Event) {}

// BenchmarkEmit measures the cost of an event for a thread of an engine in Rust: without a reader, with the client of
// llmtop, and with a stalled reader. All alternate; the results are medians of 20.
func BenchmarkEmit(b *testing.B) {
	binary := build(b, "testdata/bench.rs", "-O")
	readers := []string{"absent", "attached", "stalled"}
	meters := map[string]*meter{}
	for _, reader := range readers {
		meters[reader] = startMeter(b, binary)
	}
	client, err := socket.Dial(meters["attached"].address, "", engine.NewClock())
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = client.Run(b.Context(), nowhere{}) }()
	harness.Connect(b, meters["stalled"].address, check()).Read("synced")
	for b.Loop() {
		for range 20 {
			for _, kind := range measured {
				for _, reader := range readers {
					meters[reader].measure(b, kind)
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
