//go:build amd64 || arm64

package probe

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// BenchmarkCost measures what probes cost a llama-server: how much longer its answers take, and how much more CPU time it
// uses for them. Turns without probes and with them alternate in the same server. A turn with them takes at least 4 s, so
// that auto attaches and detaches the probes of picks as it does later. Each answer takes about 0.1 s, less than what else
// the machine does changes its speed for; see fast. The interval is that of 95 % of resampled rounds.
func BenchmarkCost(b *testing.B) {
	needProbes(b)
	for _, c := range []struct {
		name   string
		model  func(testing.TB) string
		tokens int // of an answer
	}{
		{"built-in", peer.Model, 128},
		{"random", randomModel, 3},
	} {
		for _, mode := range []string{"auto", "off", "1"} { // of --expert-sample
			b.Run(c.name+"/"+mode, func(b *testing.B) {
				server := peer.LlamaServer(b, c.model(b), "--threads", "1", "--parallel", "1")
				answers(b, server, c.tokens, 6)
				var rounds []round
				for b.Loop() {
					off := answers(b, server, c.tokens, 24)
					stop := watchHere(b, server.PID, hooksOf(mode))
					on := answers(b, server, c.tokens, 48)
					stop()
					rounds = append(rounds, round{append(off, answers(b, server, c.tokens, 24)...), on})
				}
				for _, what := range []string{"time", "CPU time"} {
					without, cost := compare(rounds, what)
					var resampled []float64
					for range 1000 {
						some := make([]round, len(rounds))
						for i := range some {
							some[i] = rounds[rand.IntN(len(rounds))]
						}
						_, v := compare(some, what)
						resampled = append(resampled, v)
					}
					slices.Sort(resampled)
					b.Logf("%s: %.1f ms for %d tokens without probes, %+.2f %% with %s (%+.2f to %+.2f)",
						what, without*1e3, c.tokens, cost, mode, resampled[25], resampled[975])
					b.ReportMetric(cost, "%"+strings.ReplaceAll(what, " ", "-"))
				}
			})
		}
	}
}

// round is how long answers took without probes and with them.
type round struct{ off, on []usage }

// compare returns the seconds for an answer without probes, and how many percent more it takes with them.
func compare(rounds []round, what string) (without, cost float64) {
	var off, on []float64
	for _, r := range rounds {
		for _, u := range r.off {
			off = append(off, u[what])
		}
		for _, u := range r.on {
			on = append(on, u[what])
		}
	}
	return fast(off), 100 * (fast(on)/fast(off) - 1)
}

// fast returns the mean of the values that are at most 10 % above the fastest tenth: those while the machine was not
// slowed down by what else runs on its cores, which on virtual machines nothing here can prevent.
func fast(values []float64) (mean float64) {
	v := slices.Sorted(slices.Values(values))
	limit, n := v[len(v)/10]*1.1, 0
	for ; n < len(v) && v[n] <= limit; n++ {
		mean += v[n]
	}
	return mean / float64(n)
}

// hooksOf returns the hooks that a value of --expert-sample stands for.
func hooksOf(sample string) engine.Hooks {
	every, err := strconv.Atoi(sample)
	if err != nil {
		every = 0 // auto
	}
	return engine.Hooks{Experts: sample != "off", Every: every}
}

// watchHere watches a process until the returned function is called. It waits until probes are at its functions.
func watchHere(b *testing.B, pid int, hooks engine.Hooks) (stop func()) {
	b.Helper()
	target, err := Inspect(pid)
	if err != nil {
		b.Fatal(err)
	}
	p, err := Open(target, engine.NewClock(), hooks)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, event.Tee{}) }()
	return func() {
		cancel()
		if err := errors.Join(<-ended, p.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

// usage is the seconds that a server worked for an answer, by clock.
type usage map[string]float64

// answers lets a server generate answers, one after the other. Their time is that of tokens, as it reports.
func answers(b *testing.B, server *peer.Process, tokens, n int) (all []usage) {
	b.Helper()
	body := map[string]any{"prompt": []int{1, 5, 9}, "n_predict": tokens, "temperature": 0, "ignore_eos": true, "cache_prompt": false}
	for range n {
		var r reply
		before := cpuTime(b, server.PID)
		if err := post(b.Context(), server.URL+"/completion", body, func(line []byte) error { return json.Unmarshal(line, &r) }); err != nil {
			b.Fatal(err)
		}
		if r.Timings.Predicted != tokens {
			b.Fatalf("%d tokens, want %d", r.Timings.Predicted, tokens)
		}
		all = append(all, usage{"time": r.Timings.PredictedMS / 1e3, "CPU time": cpuTime(b, server.PID) - before})
	}
	return all
}

// cpuTime returns the CPU time of all threads of a process, in s.
func cpuTime(b *testing.B, pid int) float64 {
	b.Helper()
	const scheduler = 2 // CPUCLOCK_SCHED of the kernel: see clock_getcpuclockid
	var at unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|scheduler, &at); err != nil {
		b.Fatal(err)
	}
	return float64(at.Nano()) / 1e9
}

// randomModel writes a mixture-of-experts model of 600 MB with random weights, and returns its file. A token takes about
// 30 ms on one core. All layers have the same weights, so that it is quickly made.
func randomModel(tb testing.TB) string {
	tb.Helper()
	const layers, width, keys, inner, experts, used, vocabulary = 16, 2048, 512, 512, 8, 2, 2048
	w := gguf.NewWriter(3)
	for key, v := range map[string]any{
		"block_count": uint32(layers), "embedding_length": uint32(width), "context_length": uint32(2048), "feed_forward_length": uint32(inner),
		"attention.head_count": uint32(16), "attention.head_count_kv": uint32(4), "attention.layer_norm_rms_epsilon": float32(1e-6),
		"rope.freq_base": float32(10000), "rope.dimension_count": uint32(128), "vocab_size": uint32(vocabulary),
		"expert_count": uint32(experts), "expert_used_count": uint32(used),
	} {
		w.Set("llama."+key, v)
	}
	w.Set("general.architecture", "llama").Set("general.name", "random weights")
	tokens, scores, kinds := []string{"<unk>", "<s>", "</s>"}, make([]float32, vocabulary), []int32{2, 3, 3}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	for i := len(tokens); i < vocabulary; i++ {
		tokens, kinds = append(tokens, fmt.Sprintf("▁w%d", i)), append(kinds, 1)
	}
	w.Set("tokenizer.ggml.model", "llama").Set("tokenizer.ggml.tokens", tokens).Set("tokenizer.ggml.scores", scores)
	w.Set("tokenizer.ggml.token_type", kinds)
	random := rand.New(rand.NewPCG(1, 2))
	matrix := func(dims ...uint64) (data []byte) {
		n := 1
		for _, d := range dims {
			n *= int(d)
		}
		for range n / tensor.Q8_0.BlockElems() {
			data = binary.LittleEndian.AppendUint16(data, tensor.FloatToHalf(0.0003))
			for range tensor.Q8_0.BlockBytes() / 8 {
				data = binary.LittleEndian.AppendUint64(data, random.Uint64())
			}
		}
		return data
	}
	ones, router := slices.Repeat([]float32{1}, width), make([]float32, width*experts)
	for i := range router {
		router[i] = float32(random.NormFloat64())
	}
	for _, name := range []string{"token_embd.weight", "output.weight"} {
		w.Add(name, tensor.Q8_0, []uint64{width, vocabulary}, matrix(width, vocabulary))
	}
	w.AddF32("output_norm.weight", []uint64{width}, ones)
	for _, m := range []struct {
		name string
		dims []uint64
	}{
		{"attn_q", []uint64{width, width}},
		{"attn_k", []uint64{width, keys}},
		{"attn_v", []uint64{width, keys}},
		{"attn_output", []uint64{width, width}},
		{"ffn_gate_exps", []uint64{width, inner, experts}},
		{"ffn_up_exps", []uint64{width, inner, experts}},
		{"ffn_down_exps", []uint64{inner, width, experts}},
	} {
		data := matrix(m.dims...)
		for i := range layers {
			w.Add(fmt.Sprintf("blk.%d.%s.weight", i, m.name), tensor.Q8_0, m.dims, data)
		}
	}
	for i := range layers {
		w.AddF32(fmt.Sprintf("blk.%d.attn_norm.weight", i), []uint64{width}, ones)
		w.AddF32(fmt.Sprintf("blk.%d.ffn_norm.weight", i), []uint64{width}, ones)
		w.AddF32(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i), []uint64{width, experts}, router)
	}
	path := filepath.Join(tb.TempDir(), "random.gguf")
	file, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	if err := w.Write(file); err != nil {
		tb.Fatal(err)
	}
	return path
}
