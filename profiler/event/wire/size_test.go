package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// session is what an engine tells of 100,000 tokens: requests of 256 tokens, four decoded together, 1,000 tokens a second, with all that
// the built-in engine stamps but text.
func session() (steps, tokens []event.Event) {
	const total, together, each = 100_000, 4, 256
	r := rand.New(rand.NewPCG(1, 2))
	at, step := event.Time(3e9), uint64(0)
	for i := range total / together {
		step++
		at += event.Time(3_900_000 + r.IntN(200_000))
		split := event.Split{
			Embed: 900 + r.Uint32N(200), Attention: 800_000 + r.Uint32N(90_000), Router: 30_000 + r.Uint32N(9000),
			Experts: 2_000_000 + r.Uint32N(200_000), Head: 700_000 + r.Uint32N(40_000), Sample: 120_000 + r.Uint32N(9000),
		}
		steps = append(steps, event.Event{
			Kind: event.KindStep, At: at, Dur: 3_700_000 + r.Int64N(99_999), Step: step, Layer: -1, N: together, Split: split,
		})
		for k := range together {
			split.Sample = 25_000 + r.Uint32N(9000)
			tokens = append(tokens, event.Event{
				Kind: event.KindToken, At: at - event.Time((together-k)*30_000), Req: event.RequestID(1 + i/each*together + k), Layer: -1,
				ID: r.Int32N(151_936), Index: int32(i % each), N: 1, Step: step, LogP: -float32(r.ExpFloat64()), HasLogP: true, Split: split,
			})
		}
	}
	return steps, tokens
}

// plain is a token with what every metric needs.
func plain(e event.Event) event.Event {
	return event.Event{Kind: e.Kind, At: e.At, Req: e.Req, Layer: -1, ID: e.ID, Index: e.Index, N: 1}
}

// TestSizeOfTokens: 100,000 tokens take at most 6 MB: a line each with what every metric needs, and in batches with all that is known.
func TestSizeOfTokens(t *testing.T) {
	const most = 6_000_000
	steps, tokens := session()
	var line []byte
	var single, batched, passes int
	for _, e := range tokens {
		e = plain(e)
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
	t.Logf("%d tokens: %d bytes in lines of their own, %d in batches of %d with everything, %d for their passes",
		len(tokens), single, batched, size, passes)
	if single > most || batched+passes > most {
		t.Errorf("more than %d bytes", most)
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

// TestTokensCostNoMemory: neither writing nor reading them allocates.
func TestTokensCostNoMemory(t *testing.T) {
	steps, tokens := session()
	var line []byte
	var d Decoder
	emit := func(event.Event) {}
	once := func(name string, f func()) {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	one := plain(tokens[5])
	once("write one", func() { line, _ = Append(line[:0], &tokens[5]) })
	once("write one that is bare", func() { line, _ = Append(line[:0], &one) })
	once("read one", func() { _, _ = d.Decode(line, emit) })
	once("write many", func() { line, _ = AppendTokens(line[:0], tokens[:256], steps[:64]) })
	once("read many", func() { _, _ = d.Decode(line, emit) })
	once("write passes", func() { line, _ = AppendSteps(line[:0], steps[:64]) })
	once("read passes", func() { _, _ = d.Decode(line, emit) })
}

// BenchmarkEncode is what a token costs that is written in a line of its own, or in one of 64.
func BenchmarkEncode(b *testing.B) {
	steps, tokens := session()
	var line []byte
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			line, _ = Append(line[:0], &tokens[i%len(tokens)])
		}
	})
	b.Run("bare", func(b *testing.B) {
		one := plain(tokens[99])
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

// BenchmarkDecode is what a token costs that is read from a line of its own, or from one of 64.
func BenchmarkDecode(b *testing.B) {
	steps, tokens := session()
	one := plain(tokens[99])
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
