package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// sampleSession returns the events of 100,000 tokens as the built-in engine stamps them, without text: requests of 256
// tokens, four decoded batchSize, 1,000 tokens/s.
func sampleSession() (steps, tokens []event.Event) {
	const total, batchSize, each = 100_000, 4, 256
	r := rand.New(rand.NewPCG(1, 2))
	at, step := event.Time(3e9), uint64(0)
	for i := range total / batchSize {
		step++
		at += event.Time(3_900_000 + r.IntN(200_000))
		split := event.Split{
			Embed: 900 + r.Uint32N(200), Attention: 800_000 + r.Uint32N(90_000), Router: 30_000 + r.Uint32N(9000),
			Experts: 2_000_000 + r.Uint32N(200_000), Head: 700_000 + r.Uint32N(40_000), Sample: 120_000 + r.Uint32N(9000),
		}
		steps = append(steps, event.Event{
			Kind: event.KindStep, At: at, Dur: 3_700_000 + r.Int64N(99_999), Step: step, Layer: -1, N: batchSize, Split: split,
		})
		for k := range batchSize {
			split.Sample = 25_000 + r.Uint32N(9000)
			tokens = append(tokens, event.Event{
				Kind: event.KindToken, At: at - event.Time((batchSize-k)*30_000), Req: event.RequestID(1 + i/each*batchSize + k), Layer: -1,
				ID: r.Int32N(151_936), Index: int32(i % each), N: 1, Step: step, LogP: -float32(r.ExpFloat64()), HasLogP: true, Split: split,
			})
		}
	}
	return steps, tokens
}

// bareToken returns a token with only what every metric needs.
func bareToken(e event.Event) event.Event {
	return event.Event{Kind: e.Kind, At: e.At, Req: e.Req, Layer: -1, ID: e.ID, Index: e.Index, N: 1}
}

// TestSizeOfTokens checks that 100,000 tokens take at most 6 MB: bare tokens in one line each, and full tokens in
// batches.
func TestSizeOfTokens(t *testing.T) {
	eventtest.SkipUnderRace(t)
	const limit = 6_000_000 // bytes
	steps, tokens := sampleSession()
	var line []byte
	var single, batched, passes int
	for _, e := range tokens {
		e = bareToken(e)
		line = appendSeedTo(t, line[:0], &e)
		single += len(line) + 1
	}
	const size = 32
	for i := 0; i < len(tokens); i += size {
		line, err := AppendTokens(line[:0], tokens[i:i+size], steps[i/4:i/4+size/4])
		if err != nil {
			t.Fatal(err)
		}
		batched += len(line) + 1
		if line, err = AppendSteps(line[:0], steps[i/4:i/4+size/4]); err != nil {
			t.Fatal(err)
		}
		passes += len(line) + 1
	}
	t.Logf("%d tokens: %d bytes in single lines, %d in batches of %d, and %d for their passes",
		len(tokens), single, batched, size, passes)
	if single > limit || batched+passes > limit {
		t.Errorf("more than %d bytes", limit)
	}
}

func appendSeedTo(t testing.TB, dst []byte, e *event.Event) []byte {
	t.Helper()
	line, err := Append(dst, e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestTokensAllocateNothing checks that encoding and decoding tokens does not allocate.
func TestTokensAllocateNothing(t *testing.T) {
	steps, tokens := sampleSession()
	var line []byte
	var d Decoder
	emit := func(event.Event) {}
	once := func(name string, f func()) {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	one := bareToken(tokens[5])
	once("write one", func() { line, _ = Append(line[:0], &tokens[5]) })
	once("write a bare one", func() { line, _ = Append(line[:0], &one) })
	once("read one", func() { _, _ = d.Decode(line, emit) })
	once("write many", func() { line, _ = AppendTokens(line[:0], tokens[:256], steps[:64]) })
	once("read many", func() { _, _ = d.Decode(line, emit) })
	once("write passes", func() { line, _ = AppendSteps(line[:0], steps[:64]) })
	once("read passes", func() { _, _ = d.Decode(line, emit) })
}

// BenchmarkEncode measures the cost of encoding a token in a line of its own, or in one of 64.
func BenchmarkEncode(b *testing.B) {
	steps, tokens := sampleSession()
	var line []byte
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			line, _ = Append(line[:0], &tokens[i%len(tokens)])
		}
	})
	b.Run("bare", func(b *testing.B) {
		one := bareToken(tokens[99])
		b.ReportAllocs()
		for b.Loop() {
			line, _ = Append(line[:0], &one)
		}
	})
	b.Run("batch", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i += 64 {
			at := i % (len(tokens) - 64) &^ 3
			line, _ = AppendTokens(line[:0], tokens[at:at+64], steps[at/4:at/4+16])
		}
	})
}

// BenchmarkDecode measures the cost of decoding a token from a line of its own, or from one of 64.
func BenchmarkDecode(b *testing.B) {
	steps, tokens := sampleSession()
	one := bareToken(tokens[99])
	many, err := AppendTokens(nil, tokens[:64], steps[:16])
	if err != nil {
		b.Fatal(err)
	}
	var d Decoder
	for name, c := range map[string]struct {
		line  []byte
		count int
	}{
		"one": {appendSeedTo(b, nil, &tokens[99]), 1}, "bare": {appendSeedTo(b, nil, &one), 1}, "batch": {many, 64},
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			b.ReportAllocs()
			for i := 0; i < b.N; i += c.count {
				_, _ = d.Decode(c.line, func(event.Event) { n++ })
			}
			if n < b.N {
				b.Fatalf("%d events of %d", n, b.N)
			}
		})
	}
}

// sampleOfHost returns a sample of a machine with 64 cores, every reading and two GPUs.
func sampleOfHost() *event.Host {
	h := &event.Host{Interval: 1e9, Cores: make([]float64, 64), Clocks: make([]float64, 64), GPUs: make([]event.GPU, 2)}
	fill(h, event.MachineFields[:])
	fill(&h.Engine, event.ProcessFields[:])
	fill(&h.Self, event.ProcessFields[:])
	for i := range h.GPUs {
		fill(&h.GPUs[i], event.GPUFields[:])
	}
	return h
}

func fill[T any](into *T, rows []event.Field[T]) {
	for i := range rows {
		*rows[i].At(into) = event.MeasuredValue(1234.5 * float64(i))
	}
}

// BenchmarkHost measures writing and reading a sample of the machine.
func BenchmarkHost(b *testing.B) {
	e := event.Event{Kind: event.KindHost, Data: sampleOfHost()}
	line, err := Append(nil, &e)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(line))
		for b.Loop() {
			buf, _ = Append(buf[:0], &e)
		}
	})
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		var d Decoder
		for b.Loop() {
			if _, err := d.Decode(line, func(event.Event) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
