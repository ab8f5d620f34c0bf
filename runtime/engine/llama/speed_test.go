//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/runtime/engine"
)

// bare calls the library like a minimal program: no callback, one sequence, no checks.
type bare struct {
	lib     *library
	context uintptr
	vocab   int
	rows    batchRows
}

// newBare creates another context on an engine's model, with its own threads.
func newBare(tb testing.TB, e *Engine) *bare {
	tb.Helper()
	l, at := e.lib, &e.lib.layout.context
	params := append(block(nil), l.contextDefaults...)
	params.setInt32(at.context, int32(e.opt.Context))
	params.setInt32(at.batch, int32(e.opt.Batch))
	params.setInt32(at.ubatch, int32(e.opt.Batch))
	params.setInt32(at.threads, int32(e.opt.Threads))
	params.setInt32(at.threadsBatch, int32(e.opt.Threads))
	b := &bare{lib: l, context: l.newContext(e.model, params), vocab: e.modelInfo.Vocab}
	if b.context == 0 {
		tb.Fatal("cannot make a second context")
	}
	e.pool.attach(b.context)
	b.rows.prepare(e.opt.Batch, 1)
	tb.Cleanup(func() { l.freeContext(b.context) })
	return b
}

// forward computes tokens from a position on and returns the last logits.
func (b *bare) forward(tb testing.TB, pos int, tokens ...int32) []float32 {
	r := &b.rows
	for i, id := range tokens {
		r.tokens[i], r.positions[i], r.sequences[i], r.logits[i] = id, int32(pos+i), &r.slots[0], 0
	}
	r.logits[len(tokens)-1] = 1
	r.c.n = int32(len(tokens))
	if code := b.lib.decode(b.context, r.c); code != 0 {
		tb.Fatalf("llama_decode returned %d", code)
	}
	return unsafe.Slice(b.lib.logits(b.context, int32(len(tokens)-1)), b.vocab)
}

// BenchmarkPeerDecode times single tokens of the built-in model at two context lengths: with a bare loop over the
// library, and with the engine with hooks off, at auto, and in every pass; on one thread, in a new order each round, so
// that all see the same state of the machine. "cost" is the median of the engine's time divided by the bare loop's in
// the same round, minus 1; "hooks" the same relative to the engine with hooks off. The median pass at auto is not
// sampled; the cost of sampled passes comes on top.
func BenchmarkPeerDecode(b *testing.B) {
	hooks := map[string]engine.Hooks{"off": {}, "auto": {Experts: true, Split: true}, "every-pass": {Experts: true, Split: true, Every: 1}}
	for _, context := range []int{16, 512} {
		b.Run(fmt.Sprintf("context=%d", context), func(b *testing.B) {
			e := openDemo(b, Options{Context: 1024})
			loop := newBare(b, e)
			prompt := make([]int32, context)
			for i := range prompt {
				prompt[i] = int32(100 + i)
			}
			loop.forward(b, 0, prompt...)
			decode(b, e, context, 0, nil)
			names := append(slices.Sorted(maps.Keys(hooks)), "bare")
			times := map[string][]float64{}
			for b.Loop() {
				rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				for _, name := range names {
					if name == "bare" {
						loop.timed(b, context)
						times[name] = append(times[name], loop.timed(b, context))
						continue
					}
					e.timed(b, engine.Hooks{}, context) // warm up like the bare loop
					times[name] = append(times[name], e.timed(b, hooks[name], context))
				}
			}
			over := func(name, base string) float64 {
				ratios := make([]float64, len(times[name]))
				for i, took := range times[name] {
					ratios[i] = took / times[base][i]
				}
				return 100 * (median(ratios) - 1)
			}
			measured := over("every-pass", "off")
			b.ReportMetric(over("off", "bare"), "%cost-off")
			b.ReportMetric(over("every-pass", "bare"), "%cost-every-pass")
			b.ReportMetric(measured, "%hooks-every-pass")
			b.ReportMetric(over("auto", "off")+measured/float64(e.rate.every), "%hooks-auto")
			b.ReportMetric(float64(e.rate.every), "N-auto")
			b.ReportMetric(median(times["bare"])/1e3, "µs-bare")
		})
	}
}

// timed returns the time of one token after a text, in ns.
func (b *bare) timed(tb testing.TB, context int) float64 {
	began := time.Now()
	b.forward(tb, context, 50)
	took := float64(time.Since(began))
	b.lib.remove(b.lib.memory(b.context), 0, int32(context), -1)
	return took
}

// timed returns the time of one token after a text, in ns.
func (e *Engine) timed(b *testing.B, h engine.Hooks, context int) float64 {
	if h != e.hooks {
		e.SetHooks(h)
	}
	batch := engine.Batch{Rows: []engine.Row{{Token: 50, Pos: int32(context), Logits: true}}}
	began := time.Now()
	if err := e.Forward(&batch); err != nil {
		b.Fatal(err)
	}
	took := float64(time.Since(began))
	e.Keep(0, context)
	return took
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
