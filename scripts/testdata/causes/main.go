// Command causes is the part of scripts/causes.sh that needs llmtop's packages:
//
//	causes model FILE LAYERS                            write a model of random weights, about 65 MB a layer
//	causes row CAUSE COMMAND REPORT RECORDING KEYS WHY  compare a run with its planted cause, as a row of a table
//
// KEYS are the keys of a report that are right, separated by commas; "none" if no cause is right. WHY says what the kernel
// reports if the cause was not planted; "" if it was.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

func main() {
	err := errors.New("usage: causes model FILE LAYERS | row CAUSE COMMAND REPORT RECORDING KEYS WHY")
	switch a := os.Args; {
	case len(a) == 4 && a[1] == "model":
		err = writeModel(a[2], a[3])
	case len(a) == 8 && a[1] == "row":
		err = printRow(a[2], a[3], a[4], a[5], strings.Split(a[6], ","), a[7])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "causes:", err)
		os.Exit(1)
	}
}

// The shape of the model.
const (
	width, keys, inner, vocabulary = 2048, 512, 8192, 2048
	heads, keyHeads                = 16, 4
)

// writeModel writes a dense model of random weights in Q8_0. All layers have the same weights, so that the file is as
// large as wanted, but quickly made.
func writeModel(path, layers string) error {
	n, err := strconv.ParseUint(layers, 10, 8)
	if err != nil || n == 0 {
		return fmt.Errorf("read layers: %q is not a number from 1 to 255", layers)
	}
	w := gguf.NewWriter(3)
	for key, v := range map[string]any{
		"block_count": uint32(n), "embedding_length": uint32(width), "context_length": uint32(2048), "feed_forward_length": uint32(inner),
		"attention.head_count": uint32(heads), "attention.head_count_kv": uint32(keyHeads), "attention.layer_norm_rms_epsilon": float32(1e-6),
		"rope.freq_base": float32(10000), "rope.dimension_count": uint32(width / heads), "vocab_size": uint32(vocabulary),
	} {
		w.Set("llama."+key, v)
	}
	w.Set("general.architecture", "llama").Set("general.name", "random weights")
	addTokenizer(w)
	random := rand.New(rand.NewPCG(1, 2))
	matrix := func(cols, rows int) (dims []uint64, data []byte) {
		for range cols * rows / tensor.Q8_0.BlockElems() {
			data = binary.LittleEndian.AppendUint16(data, tensor.FloatToHalf(0.0003))
			for range tensor.Q8_0.BlockBytes() / 8 {
				data = binary.LittleEndian.AppendUint64(data, random.Uint64())
			}
		}
		return []uint64{uint64(cols), uint64(rows)}, data
	}
	ones := slices.Repeat([]float32{1}, width)
	add := func(name string, cols, rows int) {
		dims, data := matrix(cols, rows)
		w.Add(name, tensor.Q8_0, dims, data)
	}
	add("token_embd.weight", width, vocabulary)
	add("output.weight", width, vocabulary)
	w.AddF32("output_norm.weight", []uint64{width}, ones)
	for _, m := range []struct {
		name       string
		cols, rows int
	}{
		{"attn_q", width, width},
		{"attn_k", width, keys},
		{"attn_v", width, keys},
		{"attn_output", width, width},
		{"ffn_gate", width, inner},
		{"ffn_up", width, inner},
		{"ffn_down", inner, width},
	} {
		dims, data := matrix(m.cols, m.rows)
		for i := range n {
			w.Add(fmt.Sprintf("blk.%d.%s.weight", i, m.name), tensor.Q8_0, dims, data)
		}
	}
	for i := range n {
		for _, name := range []string{"attn_norm", "ffn_norm"} {
			w.AddF32(fmt.Sprintf("blk.%d.%s.weight", i, name), []uint64{width}, ones)
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = w.Write(file)
	return errors.Join(err, file.Close())
}

// addTokenizer adds a vocabulary of control tokens, bytes and words.
func addTokenizer(w *gguf.Writer) {
	tokens, scores, kinds := []string{"<unk>", "<s>", "</s>"}, make([]float32, vocabulary), []int32{2, 3, 3}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	for i := len(tokens); i < vocabulary; i++ {
		tokens, kinds, scores[i] = append(tokens, fmt.Sprintf("▁w%d", i)), append(kinds, 1), float32(-i)
	}
	w.Set("tokenizer.ggml.model", "llama").Set("tokenizer.ggml.tokens", tokens).Set("tokenizer.ggml.scores", scores)
	w.Set("tokenizer.ggml.token_type", kinds).Set("tokenizer.ggml.bos_token_id", uint32(1))
	w.Set("tokenizer.ggml.eos_token_id", uint32(2)).Set("tokenizer.ggml.unknown_token_id", uint32(0))
}

// named is what a report names.
type named struct {
	Causes []struct {
		Key   string  `json:"key"`
		Share float64 `json:"share"`
	} `json:"causes"`
}

// printRow prints the row of a run: the causes named, whether the first one is right, and the evidence in its samples.
func printRow(cause, command, report, recorded string, right []string, why string) error {
	raw, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	var r named
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read %s: %w", report, err)
	}
	names, first := []string{}, "none"
	for i, c := range r.Causes {
		if i == 0 {
			first = c.Key
		}
		names = append(names, fmt.Sprintf("%s %s", c.Key, metric.Percent(c.Share)))
	}
	if len(names) == 0 {
		names = []string{first}
	}
	verdict := "no"
	switch {
	case why != "":
		verdict = "not planted: " + why
	case slices.Contains(right, first):
		verdict = "yes"
	}
	evidence, err := readEvidence(recorded)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | `%s` | %s | %s | %s |\n", cause, command, strings.Join(names, ", "), verdict, evidence)
	return nil
}

// readEvidence sums the usage events of a recording.
func readEvidence(path string) (string, error) {
	rec, err := recording.Open(path)
	if err != nil {
		return "", err
	}
	defer rec.Close()
	var sum event.Usage
	samples, cores := 0, ""
	var stolen, machine float64
	var decoder wire.Decoder
	for c := rec.Cursor(0); ; {
		entry, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if entry.Note != nil {
			continue
		}
		if _, err := decoder.Decode(entry.Line, func(e event.Event) {
			if h, ok := e.Data.(*event.Host); ok && h.Steal.OK() {
				stolen, machine = stolen+h.Steal.V*float64(h.Interval), machine+float64(h.Interval)
			}
			u, ok := e.Data.(*event.Usage)
			if !ok {
				return
			}
			samples++
			sum.Interval += u.Interval
			cores = metric.Reading(u.Cores, metric.Cores)
			sum.Add(u)
		}); err != nil {
			return "", err
		}
	}
	words := []string{fmt.Sprintf("%d samples of %s", samples, metric.Duration(sum.Interval)), cores}
	if stolen > 0 {
		words = append(words, "stolen "+metric.Percent(stolen/machine))
	}
	for _, f := range event.UsageFields {
		r := *f.At(&sum)
		switch {
		case !r.OK() || f.Key == "cores" || f.Key == "threads" || r.V == 0:
		case f.Unit == "ns":
			words = append(words, fmt.Sprintf("%s %s", f.Name, metric.Duration(int64(r.V))))
		case f.Unit == "By":
			words = append(words, fmt.Sprintf("%s %s", f.Name, metric.Bytes(r.V)))
		default:
			words = append(words, fmt.Sprintf("%s %.0f", f.Name, r.V))
		}
	}
	return strings.Join(words, "; "), nil
}
