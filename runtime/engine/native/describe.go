package native

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// describe describes the loaded model. Parameters and bytes are sums over the tensors of the file.
func describe(w *model.Weights, f *gguf.File, opt Options) event.Model {
	m := event.Model{
		Name: w.Name, Path: f.Path, Architecture: w.Architecture,
		Layers: w.Layers, Width: w.Width, Heads: w.Heads, KVHeads: w.KVHeads, HeadDim: w.HeadDim, Vocab: w.Vocab,
		Experts: w.Experts, ExpertsUsed: w.Used, FeedForward: w.FeedForward,
		Context: opt.Context, TrainContext: w.TrainContext,
		KVBytes: int64(2 * 2 * w.Layers * w.KVHeads * w.HeadDim), // keys and values, as 16-bit floats
	}
	if m.Path == "" {
		m.Path = builtIn
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(baseName(m.Path), ".gguf")
	}
	_, untied := f.Tensor("output.weight")
	byType := map[tensor.Type]uint64{}
	for _, t := range f.Tensors {
		elements, bytes := int64(t.Elements()), int64(t.Bytes)
		m.Parameters += elements
		m.Bytes += bytes
		byType[t.Type] += t.Elements()
		switch {
		case strings.Contains(t.Name, "_exps."):
			m.Active += elements * int64(w.Used) / int64(w.Experts)
			m.WeightBytes += bytes * int64(w.Used) / int64(w.Experts)
		case t.Name == "token_embd.weight" && untied: // one row is looked up; the matrix is not multiplied
			m.Active += int64(w.Width)
			m.WeightBytes += bytes / int64(w.Vocab)
		default:
			m.Active += elements
			m.WeightBytes += bytes
		}
	}
	var most uint64
	for t, n := range byType {
		if n > most || n == most && t.String() < m.Quantisation {
			most, m.Quantisation = n, t.String()
		}
	}
	return m
}

// baseName returns the last element of a path, with slashes or backslashes.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
