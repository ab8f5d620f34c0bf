//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strings"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// header holds data of the file, read before the library loads it.
type header struct {
	layers, experts, used, feedForward, headDim, kvBytes int

	// Sums over the tensors; 0 if the model is split over several files.
	active, weightBytes int64
	quantisation        string
}

// readHeader reads the header of a model file. A damaged header is an error here, so that the library does not see it.
func readHeader(path string) (h header, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return header{}, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	arch, err := f.Metadata.String("general.architecture")
	if err != nil {
		return header{}, err
	}
	number := func(key string) int {
		n, err := f.Metadata.Uint(arch + "." + key)
		if err != nil || n > 1<<31 {
			return 0
		}
		return int(n)
	}
	h = header{
		layers: number("block_count"), experts: number("expert_count"), used: number("expert_used_count"),
		feedForward: orElse(number("expert_feed_forward_length"), number("feed_forward_length")),
		headDim:     number("attention.key_length"),
	}
	heads, kvHeads := number("attention.head_count"), number("attention.head_count_kv")
	if h.headDim == 0 && heads > 0 {
		h.headDim = number("embedding_length") / heads
	}
	h.kvBytes = 2 * h.layers * orElse(kvHeads, heads) * (h.headDim + orElse(number("attention.value_length"), h.headDim)) // 16-bit floats
	if parts, err := f.Metadata.Uint("split.count"); err != nil || parts <= 1 {
		h.sum(f)
	}
	return h, nil
}

// sum adds up the bytes and parameters that decoding a token reads.
func (h *header) sum(f *gguf.File) {
	_, untied := f.Tensor("output.weight")
	byType := map[tensor.Type]uint64{}
	for _, t := range f.Tensors {
		elements, bytes := int64(t.Elements()), int64(t.Bytes)
		byType[t.Type] += t.Elements()
		switch {
		case strings.Contains(t.Name, "_exps.") && h.experts > 0:
			elements, bytes = elements/int64(h.experts)*int64(h.used), bytes/int64(h.experts)*int64(h.used)
		case t.Name == "token_embd.weight" && untied && len(t.Dims) > 1: // one row is looked up; the matrix is not multiplied
			elements, bytes = elements/int64(t.Dims[1]), bytes/int64(t.Dims[1])
		}
		h.active += elements
		h.weightBytes += bytes
	}
	var most uint64
	for t, n := range byType {
		if n > most || n == most && t.String() < h.quantisation {
			most, h.quantisation = n, t.String()
		}
	}
}
