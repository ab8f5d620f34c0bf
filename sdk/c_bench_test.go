package sdk

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// turns is the number of repetitions of each measurement.
const turns = 40

// bursts are the numbers of events emitted at once, by kind. They are much smaller than the ring, so that nothing is
// dropped if the writer gets a core between two bursts.
var bursts = map[string]int64{"clock": 4096, "token": 4096, "span": 4096, "apart": 512}

// meter is a running bench.c or bench.rs, with its reader.
type meter struct {
	in      io.Writer
	out     *bufio.Reader
	address string
	come    atomic.Int64 // number of tokens and stages that the reader has received
	due     int64        // number that it has to receive; 0 if it does not read
	dropped uint64
	ns      map[string][]float64
}

func startMeter(b *testing.B, binary string) *meter {
	b.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "ADDRESS=unix:"+Socket(b))
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
	if m.address, err = m.out.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	m.address = strings.TrimSpace(m.address)
	return m
}

// Emit implements event.Sink.
func (m *meter) Emit(e event.Event) {
	if e.Kind == event.KindToken || e.Kind == event.KindStage {
		m.come.Add(1)
	}
}

// attach connects the client of llmtop as a reader.
func (m *meter) attach(b *testing.B) {
	b.Helper()
	client, err := socket.Dial(m.address, "", engine.NewClock())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(background(func() { _ = client.Run(b.Context(), m) }))
}

// background runs f, and returns a function that waits for its end.
func background(f func()) (wait func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return func() { <-done }
}

// measure makes the program emit a burst, and waits until the reader has received it.
func (m *meter) measure(b *testing.B, kind string, reads bool) {
	b.Helper()
	var ns float64
	fmt.Fprintf(m.in, "%s %d\n", kind, bursts[kind])
	if _, err := fmt.Fscan(m.out, &ns, &m.dropped); err != nil {
		b.Fatal(err)
	}
	m.ns[kind] = append(m.ns[kind], ns)
	if reads && kind != "clock" {
		m.due += bursts[kind]
	}
	for end := time.Now().Add(time.Minute); m.come.Load() < m.due; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%d of %d events have come", m.come.Load(), m.due)
		}
	}
	time.Sleep(5 * time.Millisecond)
}

// BenchmarkC measures the cost of an event for an engine in C: tokens and scoped timers in a burst, and tokens 20 us
// apart; without a reader, with the client of llmtop, and with a stalled reader. All alternate; the results are
// medians. Reading the clock is measured for comparison: a token includes one reading, a timer two, and the measurement
// of a token apart one more.
func BenchmarkC(b *testing.B) {
	binary := buildC(b, languageC, "c/testdata/bench.c", "-O2")
	meters := map[string]*meter{"absent": startMeter(b, binary), "attached": startMeter(b, binary), "stalled": startMeter(b, binary)}
	meters["attached"].attach(b)
	Connect(b, meters["stalled"].address, check).Read("synced")
	kinds := slices.Sorted(maps.Keys(bursts))
	for b.Loop() {
		for range turns {
			for _, kind := range kinds {
				for reader, m := range meters {
					m.measure(b, kind, reader == "attached")
				}
			}
		}
	}
	for reader, m := range meters {
		if m.dropped > 0 {
			b.Errorf("with reader %s the ring dropped %d events", reader, m.dropped)
		}
		for _, kind := range kinds {
			slices.Sort(m.ns[kind])
			b.ReportMetric(m.ns[kind][len(m.ns[kind])/2], "ns/"+kind+"-"+reader)
		}
	}
}
