package gguf

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// Describe returns what the header says of the model, of any architecture. 0 means unknown. Sums over the tensors are
// unknown if the model is split over several files. KVBytes assumes keys and values of 16-bit floats.
func (f *File) Describe() event.Model {
	m := event.Model{Path: f.Path}
	m.Name, _ = f.Metadata.String("general.name")
	m.Architecture, _ = f.Metadata.String("general.architecture")
	number := func(key string) int {
		n, err := f.Metadata.Uint(m.Architecture + "." + key)
		if err != nil || n > 1<<31 {
			return 0
		}
		return int(n)
	}
	m.Layers, m.Width = number("block_count"), number("embedding_length")
	m.Heads, _ = f.heads(m.Architecture+".attention.head_count", m.Layers)
	m.HeadDim = number("attention.key_length")
	m.Experts, m.ExpertsUsed = number("expert_count"), number("expert_used_count")
	m.FeedForward = cmp.Or(number("expert_feed_forward_length"), number("feed_forward_length"))
	m.TrainContext = number("context_length")
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Width / m.Heads
	}
	m.KVHeads, m.KVBytes = f.kv(&m, number)
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Dims) > 1 {
		m.Vocab = int(t.Dims[1])
	}
	if parts, err := f.Metadata.Uint("split.count"); err != nil || parts <= 1 {
		f.sum(&m)
	}
	return m
}

// heads returns the number of heads of the layers: the most, and their sum. One number is that of each layer.
func (f *File) heads(key string, layers int) (most, sum int) {
	list, err := f.Metadata.Ints(key)
	if err != nil {
		n, _ := f.Metadata.Uint(key)
		if n > 1<<31 {
			return 0, 0
		}
		return int(n), int(n) * layers
	}
	for _, n := range list[:min(len(list), layers)] {
		n = min(max(n, 0), 1<<31)
		most, sum = max(most, int(n)), sum+int(n)
	}
	return most, sum
}

// kv returns the heads of keys and values of a layer, and the bytes that llama.cpp caches per token, of all layers: those of
// state-space and convolution layers do not grow with the tokens. 0: unknown, as where layers attend to a window.
func (f *File) kv(m *event.Model, number func(string) int) (heads int, bytes int64) {
	layers := max(m.Layers-number("nextn_predict_layers"), 0) // those that draft have no cache
	key := m.Architecture + ".attention.head_count"
	if f.Metadata.Has(key + "_kv") {
		key += "_kv"
	}
	heads, sum := f.heads(key, layers)
	every := number("full_attention_interval")
	if every == 0 && (m.Architecture == "qwen3next" || strings.HasPrefix(m.Architecture, "qwen35")) {
		every = 4 // llama.cpp's default
	}
	if every > 1 && sum == heads*layers {
		sum = heads * (layers / every)
	}
	values := cmp.Or(number("attention.value_length"), m.HeadDim)
	if number("attention.key_length_mla") > 0 { // keys hold the values, compressed
		values = 0
	}
	window := number("attention.sliding_window")
	if number("attention.indexer.key_length") > 0 || window > 0 && window < m.TrainContext && m.Architecture != "phi3" {
		return heads, 0
	}
	if per := int64(m.HeadDim) + int64(values); sum <= 1<<31 && per <= 1<<24 {
		bytes = 2 * int64(sum) * per
	}
	return heads, bytes
}

// sum adds up parameters and bytes: of all tensors, and of those that decoding a token reads.
func (f *File) sum(m *event.Model) {
	_, untied := f.Tensor("output.weight")
	byType := map[tensor.Type]uint64{}
	for _, t := range f.Tensors {
		elements, bytes := int64(t.Elements()), int64(t.Bytes)
		m.Parameters += elements
		m.Bytes += bytes
		byType[t.Type] += t.Elements()
		switch {
		case strings.Contains(t.Name, "_exps.") && m.Experts > 0:
			elements, bytes = elements/int64(m.Experts)*int64(m.ExpertsUsed), bytes/int64(m.Experts)*int64(m.ExpertsUsed)
		case t.Name == "token_embd.weight" && untied && len(t.Dims) > 1: // one row is looked up; the matrix is not multiplied
			elements, bytes = elements/int64(t.Dims[1]), bytes/int64(t.Dims[1])
		}
		m.Active += elements
		m.WeightBytes += bytes
	}
	var most uint64
	for t, n := range byType {
		if n > most || n == most && t.String() < m.Quantisation {
			most, m.Quantisation = n, t.String()
		}
	}
}

// ExpertRange is where the experts of one tensor are in the file: expert e has Bytes bytes from Offset + e*Bytes.
type ExpertRange struct {
	Layer         int
	Offset, Bytes int64
}

// maxExpertCells bounds layers x experts, as the store does.
const maxExpertCells = 1 << 16

// ExpertRanges returns the number of layers and of experts per layer, and the parts of the file with their weights; none
// without experts.
func (f *File) ExpertRanges() (layers, experts int, ranges []ExpertRange) {
	m := f.Describe()
	if m.Layers <= 0 || m.Experts <= 0 || m.Layers > maxExpertCells/m.Experts {
		return 0, 0, nil
	}
	for _, t := range f.Tensors {
		layer, rest, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		l, err := strconv.Atoi(layer)
		if err != nil || l < 0 || l >= m.Layers || !strings.Contains(rest, "_exps.") || t.Dims[len(t.Dims)-1] != uint64(m.Experts) {
			continue
		}
		if size := t.Bytes / uint64(m.Experts); size > 0 {
			ranges = append(ranges, ExpertRange{l, int64(f.start + t.Offset), int64(size)})
		}
	}
	return m.Layers, m.Experts, ranges
}
