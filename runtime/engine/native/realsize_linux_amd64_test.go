package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

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
	_, err = p.writer().WriteTo(f)
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

// BenchmarkRealSize compares the engine with llama-bench on models of real size, in turns, by its definitions: decode is
// single tokens from an empty context, prefill a prompt. It prints medians, and the range between the quartiles of the
// ratio of the rounds.
func BenchmarkRealSize(b *testing.B) {
	peer.Path(b, peer.LlamaBenchEnv)
	models := realSize()
	names := make([]string, 0, len(models))
	for name := range models {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
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
	const rounds = 5
	e, err := native.Open(path, native.Options{Context: 1024, Threads: threads, MaxBatch: 512})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	goruntime.LockOSThread() // as the scheduler does
	defer goruntime.UnlockOSThread()
	own := &ours{engine: e}
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
	for b.Loop() {
		var speeds, peers, ratios []float64
		for range rounds {
			prompts, texts := peer.LlamaBench(b, path, threads, prompt, text, 2)
			theirs := slices.Max(append(prompts, texts...))
			measure() // as llama-bench's warm-up
			speed := max(measure(), measure())
			speeds, peers, ratios = append(speeds, speed), append(peers, theirs), append(ratios, speed/theirs)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(speeds), "native-tok/s")
		b.ReportMetric(median(peers), "llama-bench-tok/s")
		b.ReportMetric(median(ratios), "ratio") // which it sorts
		b.ReportMetric(ratios[rounds/4], "ratio-q1")
		b.ReportMetric(ratios[rounds-1-rounds/4], "ratio-q3")
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
