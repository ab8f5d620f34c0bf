package native_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// realSize returns models of 270 MB to 1.5 GB with random weights: a dense one and a mixture of experts of each type.
func realSize() map[string]blueprint {
	dense := blueprint{
		architecture: "llama", layers: 8, width: 2048, heads: 32, kvHeads: 4, dim: 64, feedForward: 5632, vocab: 32000, context: 2048,
	}
	experts := blueprint{
		architecture: "qwen3moe", layers: 16, width: 1024, heads: 16, kvHeads: 4, dim: 64, feedForward: 768, vocab: 32000, context: 2048,
		experts: 32, used: 4,
	}
	models := map[string]blueprint{}
	add := func(shape string, p blueprint, name string, kind, better tensor.Type) {
		p.kind, p.better = kind, better
		models[shape+"-"+name] = p
	}
	for _, kind := range []tensor.Type{tensor.Q8_0, tensor.Q4_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.F16, tensor.BF16} {
		add("dense", dense, kind.String(), kind, 0)
	}
	add("dense", dense, "Q4_K_M", tensor.Q4_K, tensor.Q6_K)
	add("moe", experts, "Q4_K_M", tensor.Q4_K, tensor.Q6_K)
	add("moe", experts, "Q8_0", tensor.Q8_0, 0)
	return models
}

// cachedModel returns the file of a model in the user's cache folder, and writes it if it is not there.
func cachedModel(b *testing.B, name string, p blueprint) string {
	b.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(cache, "llmtop", "bench", fmt.Sprintf("%s-%dx%d.gguf", name, p.layers, p.width))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		b.Fatal(err)
	}
	err = p.writer().Write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// names returns the names of models in order.
func names(models map[string]blueprint) []string { return slices.Sorted(maps.Keys(models)) }

// BenchmarkRealSize compares the engine with llama-bench on models of real size, in turns, by its definitions: decode is
// single tokens from an empty context, prefill a prompt.
func BenchmarkRealSize(b *testing.B) {
	peer.Path(b, peer.LlamaBenchEnv)
	models := realSize()
	for _, name := range names(models) {
		for threads := 1; threads <= min(2, goruntime.GOMAXPROCS(0)); threads++ {
			for _, step := range []struct {
				name         string
				prompt, text int
			}{{"decode", 0, 16}, {"prefill32", 32, 0}, {"prefill128", 128, 0}, {"prefill512", 512, 0}} {
				b.Run(fmt.Sprintf("%s/threads=%d/%s", name, threads, step.name), func(b *testing.B) {
					compareRealSize(b, cachedModel(b, name, models[name]), threads, step.prompt, step.text)
				})
			}
		}
	}
}

func compareRealSize(b *testing.B, path string, threads, prompt, text int) {
	own := openRealSize(b, path, native.Options{Context: 1024, Threads: threads, MaxBatch: 512})
	measure := func() float64 {
		own.reset()
		began := time.Now()
		for pos := range max(text, 1) {
			if _, err := own.forward(benchTokens(max(prompt, 1)), pos); err != nil {
				b.Fatal(err)
			}
		}
		return float64(max(prompt, text)) / time.Since(began).Seconds()
	}
	inTurns(b, "tok/s", func() float64 {
		measure() // as llama-bench's warm-up
		return max(measure(), measure())
	}, func() float64 {
		prompts, texts := peer.LlamaBench(b, path, threads, prompt, text, 2)
		return slices.Max(append(prompts, texts...))
	})
}

func openRealSize(b *testing.B, path string, opt native.Options) *ours {
	b.Helper()
	e, err := native.Open(path, opt)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	goruntime.LockOSThread() // as the scheduler does
	b.Cleanup(goruntime.UnlockOSThread)
	return &ours{engine: e}
}

// inTurns measures the engine and llama.cpp in turns, and reports the medians, and the quartiles of the ratio.
func inTurns(b *testing.B, unit string, ours, theirs func() float64) {
	const rounds = 5
	for b.Loop() {
		var speeds, peers, ratios []float64
		for range rounds {
			peer := theirs()
			speed := ours()
			speeds, peers, ratios = append(speeds, speed), append(peers, peer), append(ratios, speed/peer)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(speeds), "native-"+unit)
		b.ReportMetric(median(peers), "llama.cpp-"+unit)
		b.ReportMetric(median(ratios), "ratio") // which it sorts
		b.ReportMetric(ratios[rounds/4], "ratio-q1")
		b.ReportMetric(ratios[rounds-1-rounds/4], "ratio-q3")
	}
}

// BenchmarkRealSizeBeside compares decoding four requests at a time with libllama, all threads on both sides.
func BenchmarkRealSizeBeside(b *testing.B) {
	const requests, text = 4, 16
	needLibllama(b)
	models, threads := realSize(), goruntime.GOMAXPROCS(0)
	for _, name := range names(models) {
		b.Run(name, func(b *testing.B) {
			path := cachedModel(b, name, models[name])
			peer := loadLibllama(b, path, 256, 64, threads, requests, flashAuto)
			defer peer.close()
			own := openRealSize(b, path, native.Options{Context: 256, Threads: threads, Slots: requests})
			measure := func(reset func(), forward func(tokens []int32, pos int) error) float64 {
				time.Sleep(peerRest)
				best := 0.
				for range 3 { // the first one wakes the threads
					reset()
					began := time.Now()
					for pos := range text {
						if err := forward(benchTokens(requests), pos); err != nil {
							b.Fatal(err)
						}
					}
					best = max(best, requests*text/time.Since(began).Seconds())
				}
				return best
			}
			inTurns(b, "tok/s", func() float64 { return measure(own.reset, own.beside) }, func() float64 { return measure(peer.reset, peer.beside) })
		})
	}
}

// beside computes one token of each of several slots, all at position pos, with logits.
func (o *ours) beside(tokens []int32, pos int) error {
	o.batch.Rows = o.batch.Rows[:0]
	for i, token := range tokens {
		o.batch.Rows = append(o.batch.Rows, engine.Row{Token: token, Pos: int32(pos), Slot: int32(i), Logits: true})
	}
	return o.engine.Forward(&o.batch)
}

// BenchmarkRealSizeLoad compares the time from opening a file in the page cache to the first token with libllama's, as a
// rate.
func BenchmarkRealSizeLoad(b *testing.B) {
	needLibllama(b)
	models, threads := realSize(), goruntime.GOMAXPROCS(0)
	for _, name := range names(models) {
		b.Run(name, func(b *testing.B) {
			path := cachedModel(b, name, models[name])
			first := func(c computer) {
				if _, err := c.forward(benchTokens(1), 0); err != nil {
					b.Fatal(err)
				}
			}
			inTurns(b, "loads/s", func() float64 {
				began := time.Now()
				e, err := native.Open(path, native.Options{Context: 1024, Threads: threads})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				first(&ours{engine: e})
				return 1 / time.Since(began).Seconds()
			}, func() float64 {
				began := time.Now()
				l := loadLibllama(b, path, 1024, 256, threads, 1, flashAuto)
				defer l.close()
				first(l)
				return 1 / time.Since(began).Seconds()
			})
		})
	}
}

// benchTokens returns n arbitrary tokens.
func benchTokens(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(300 + i*7919%30000)
	}
	return tokens
}
