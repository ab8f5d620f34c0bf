// Package imatrix reads the router's picks per expert from files written by llama-imatrix, which count the tokens of a
// calibration text that went through each expert's weights.
package imatrix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// Upper limits of a valid file.
const (
	maxLayers = 1024
	maxCells  = 1 << 16 // layers x experts
	maxCount  = 1 << 53 // above it, float64 cannot count in steps of 1
)

// weights names the tensors whose counts are read. Per layer, the first one present is used: all weights of an expert
// see the same tokens.
var weights = [...]string{"ffn_down_exps", "ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"}

// Counts holds the number of tokens that went through each expert.
type Counts struct {
	Experts  event.Experts // Used is 0 if it cannot be derived from the counts
	Datasets []string      // names of the calibration texts, from the file
	Chunks   uint64        // number of text chunks; 0 if not in the file
}

// Open reads a file. Errors: the file cannot be read, is not an imatrix file, or has no experts.
func Open(path string) (*Counts, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read imatrix: %w", err)
	}
	defer f.Close()
	c, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("read imatrix %s: %w", path, err)
	}
	return c, nil
}

func read(f *gguf.File) (*Counts, error) {
	if kind, _ := f.Metadata.String("general.type"); kind != "imatrix" {
		return nil, errors.New("the file is not an imatrix file")
	}
	layers, experts := shape(f)
	switch {
	case experts == 0:
		return nil, errors.New("the file counts no experts: the model is dense, or the file is older than mid 2025")
	case layers*experts > maxCells:
		return nil, fmt.Errorf("implausible shape: %d layers of %d experts", layers, experts)
	}
	c := &Counts{Experts: event.Experts{
		Layers: layers, Experts: experts, Prompt: make([]uint64, layers*experts), Decode: make([]uint64, layers*experts),
	}}
	for layer := range layers {
		if err := row(f, layer, c.Experts.Prompt[layer*experts:][:experts]); err != nil {
			return nil, err
		}
	}
	c.Datasets, _ = f.Metadata.Strings("imatrix.datasets")
	c.Chunks, _ = f.Metadata.Uint("imatrix.chunk_count")
	size, _ := f.Metadata.Uint("imatrix.chunk_size")
	if c.Chunks < maxCount && size < 1<<32 && c.Chunks*size < maxCount {
		c.Experts.PromptTokens = c.Chunks * size
	}
	c.Experts.Used = used(&c.Experts)
	return c, nil
}

// find returns the counts of a layer; false if it has no experts.
func find(f *gguf.File, layer int) (gguf.Tensor, bool) {
	for _, w := range weights {
		if t, ok := f.Tensor("blk." + strconv.Itoa(layer) + "." + w + ".weight.counts"); ok {
			return t, true
		}
	}
	return gguf.Tensor{}, false
}

// shape returns the number of layers up to the last one with experts, and the number of experts.
func shape(f *gguf.File) (layers, experts int) {
	for layer := range maxLayers {
		if t, ok := find(f, layer); ok {
			if n := t.Elements(); n <= maxCells {
				layers, experts = layer+1, max(experts, int(n))
			}
		}
	}
	return layers, experts
}

// row reads the counts of a layer. They stay 0 for a layer without experts.
func row(f *gguf.File, layer int, into []uint64) error {
	t, ok := find(f, layer)
	if !ok {
		return nil
	}
	data := f.Data(t)
	if t.Type.String() != "F32" || t.Elements() != uint64(len(into)) || uint64(len(data)) != 4*t.Elements() {
		return fmt.Errorf("%s has %d numbers of type %v, where the file has %d experts", clean.Name(t.Name), t.Elements(), t.Type, len(into))
	}
	for i := range into {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		if !(v >= 0 && v <= maxCount) {
			return fmt.Errorf("%s: %v is not a count", clean.Name(t.Name), v)
		}
		into[i] = uint64(v)
	}
	return nil
}

// used returns the number of experts per token, if all layers with experts agree on it (picks = tokens x used), or 0.
func used(e *event.Experts) int {
	all := uint64(0)
	for layer := range e.Layers {
		sum := uint64(0)
		for _, n := range e.Prompt[layer*e.Experts:][:e.Experts] {
			sum += n
		}
		switch {
		case sum == 0:
		case e.PromptTokens == 0 || sum%e.PromptTokens != 0 || all != 0 && all != sum:
			return 0
		default:
			all = sum
		}
	}
	if all == 0 {
		return 0
	}
	return int(min(all/e.PromptTokens, uint64(e.Experts)))
}

// Describe describes the source of the counts.
func (c *Counts) Describe() string {
	words := "picks of the llama-imatrix calibration text, not of requests"
	if len(c.Datasets) > 0 {
		words += ": " + strings.Join(c.Datasets[:min(len(c.Datasets), 4)], ", ")
	}
	if c.Chunks > 0 {
		words += " (" + metric.Plural(c.Chunks, "chunk") + ")"
	}
	return words
}
