//go:build amd64 || arm64

package probe

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// costModes are the values of --expert-sample, and "none" for no probes.
var costModes = []string{"none", "off", "auto", "1"}

// BenchmarkCost measures what probes cost a llama-server: ms for a token without them and with them. Each round has all
// modes, in random order. A cost is the median of the ratios to the same round without probes, minus one, with the 95 %
// interval of that median.
func BenchmarkCost(b *testing.B) {
	needProbes(b)
	for _, c := range []struct {
		name, model string
		tokens      int // of an answer: few, since a long context makes the tokens of the built-in model slow
		answers     int
	}{
		{"built-in", "", 128, 5},
		{"random", randomModel(b), 20, 3},
	} {
		b.Run(c.name, func(b *testing.B) {
			server := peer.LlamaServer(b, c.model, "--threads", "1", "--parallel", "1")
			target, err := Inspect(server.PID)
			if err != nil {
				b.Fatal(err)
			}
			times := map[string][]float64{}
			for b.Loop() {
				for _, i := range rand.Perm(len(costModes)) {
					mode := costModes[i]
					times[mode] = append(times[mode], tokenTime(b, target, server.URL, mode, c.tokens, c.answers))
				}
			}
			for _, mode := range costModes {
				low, median, high := spread(times[mode])
				text := fmt.Sprintf("%-4s %.3f ms a token (%.3f to %.3f)", mode, median, low, high)
				ratios := make([]float64, len(times[mode]))
				for i, v := range times[mode] {
					ratios[i] = 100 * (v/times["none"][i] - 1)
				}
				if mode != "none" {
					low, median, high = spread(ratios)
					text += fmt.Sprintf(", costs %.2f %% (%.2f to %.2f)", median, low, high)
					b.ReportMetric(median, "%cost-"+mode)
				}
				b.Log(text)
			}
		})
	}
}

// tokenTime returns the ms that the server takes for a token: the mean of some answers, after one more.
func tokenTime(b *testing.B, target *Target, url, mode string, tokens, answers int) (mean float64) {
	b.Helper()
	if mode != "none" {
		w := watchProcess(b, target.PID, mode)
		defer func() {
			w.kill()
			expectUntouched(b, target)
		}()
		w.expect(b, "attached")
	}
	timed(b, url, tokens)
	for range answers {
		mean += timed(b, url, tokens) / float64(answers)
	}
	return mean
}

// timed returns the ms that the server reports for a token.
func timed(b *testing.B, url string, tokens int) float64 {
	b.Helper()
	body := map[string]any{"prompt": []int{1, 5, 9}, "n_predict": tokens, "temperature": 0, "ignore_eos": true, "cache_prompt": false}
	var r reply
	if err := post(b.Context(), url+"/completion", body, func(line []byte) error { return json.Unmarshal(line, &r) }); err != nil {
		b.Fatal(err)
	}
	if r.Timings.Predicted != tokens {
		b.Fatalf("%d tokens, want %d", r.Timings.Predicted, tokens)
	}
	return r.Timings.PredictedMS / float64(tokens)
}

// spread returns the median, and its 95 % interval by the ranks of the values.
func spread(values []float64) (low, median, high float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	k := max(int(float64(n)/2-.98*math.Sqrt(float64(n))), 0)
	return v[k], (v[(n-1)/2] + v[n/2]) / 2, v[n-1-k]
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
	if _, err := w.WriteTo(file); err != nil {
		tb.Fatal(err)
	}
	return path
}
