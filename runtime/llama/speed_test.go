//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/llmtop/llmtop/runtime"
)

// bare drives the library as the shortest program would: no callback, one sequence, no checks.
type bare struct {
	lib     *library
	context uintptr
	vocab   int
	rows    batchRows
}

// newBare makes another context on an engine's model, with threads of its own.
func newBare(tb testing.TB, e *Engine) *bare {
	tb.Helper()
	l, at := e.lib, &e.lib.layout.context
	params := append(block(nil), l.contextDefaults...)
	params.setInt32(at.context, int32(e.opt.Context))
	params.setInt32(at.batch, int32(e.opt.Batch))
	params.setInt32(at.ubatch, int32(e.opt.Batch))
	params.setInt32(at.threads, int32(e.opt.Threads))
	params.setInt32(at.threadsBatch, int32(e.opt.Threads))
	b := &bare{lib: l, context: l.newContext(e.model, params), vocab: e.about.Vocab}
	if b.context == 0 {
		tb.Fatal("cannot make a second context")
	}
	e.pool.attach(b.context)
	b.rows.prepare(e.opt.Batch, 1)
	tb.Cleanup(func() { l.freeContext(b.context) })
	return b
}

// forward computes tokens from a position on and returns the logits after the last one.
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

// BenchmarkPeerDecode times single tokens of the built-in model: by a bare loop over the library, and by the engine with different
// hooks, in turn, so that all see the same machine. The metrics are medians; cost-… is the engine's time over the bare loop's less one.
func BenchmarkPeerDecode(b *testing.B) {
	const prompt = 64
	e := openDemo(b, Options{Context: 2048, Threads: 1})
	other := newBare(b, e)
	ids := make([]int32, prompt)
	for i := range ids {
		ids[i] = int32(100 + i)
	}
	other.forward(b, 0, ids...)
	batch := &runtime.Batch{}
	for i, id := range ids {
		batch.Rows = append(batch.Rows, runtime.Row{Token: id, Pos: int32(i), Prompt: true, Logits: i == prompt-1})
	}
	if err := e.Forward(batch); err != nil {
		b.Fatal(err)
	}
	kinds := []struct {
		name  string
		hooks runtime.Hooks
	}{
		{"off", runtime.Hooks{}},
		{"auto", runtime.Hooks{Experts: true, Split: true}},
		{"experts", runtime.Hooks{Experts: true, Every: 1}},
		{"split", runtime.Hooks{Experts: true, Split: true, Every: 1}},
		{"ops", runtime.Hooks{Ops: true}},
	}
	base, times := []float64{}, make([][]float64, len(kinds))
	sums := make([]float64, len(kinds)+1)
	for i := 0; b.Loop(); i++ {
		pos := prompt + i%1024
		began := time.Now()
		other.forward(b, pos, 50)
		base = append(base, float64(time.Since(began)))
		sums[len(kinds)] += base[i]
		b.StopTimer()
		other.lib.remove(other.lib.memory(other.context), 0, int32(pos), -1)
		other.forward(b, pos, 50)
		for k, kind := range kinds {
			e.SetHooks(kind.hooks)
			e.Keep(0, pos)
			batch.Rows = append(batch.Rows[:0], runtime.Row{Token: 50, Pos: int32(pos), Logits: true})
			began := time.Now()
			if err := e.Forward(batch); err != nil {
				b.Fatal(err)
			}
			times[k] = append(times[k], float64(time.Since(began)))
			sums[k] += times[k][i]
		}
		if pos == prompt+1023 {
			e.Keep(0, prompt)
			other.lib.remove(other.lib.memory(other.context), 0, prompt, -1)
		}
		b.StartTimer()
	}
	for k, kind := range kinds {
		b.ReportMetric(100*(median(times[k])/median(base)-1), "%cost-"+kind.name)
		b.ReportMetric(100*(sums[k]/sums[len(kinds)]-1), "%mean-"+kind.name)
	}
	b.ReportMetric(float64(e.auto), "N-auto")
	b.ReportMetric(median(base)/1e3, "µs-bare")
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x[len(x)/2]
}
