// Package imatrix reads how often the router picked each expert from the files that llama-imatrix writes: it counts the tokens of its calibration text that
// went through each expert's weights.
package imatrix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/native/gguf"
)

// The bounds of what is believed.
const (
	maxLayers = 1024
	maxCells  = 1 << 16 // layers x experts
	maxCount  = 1 << 53 // above it a float64 does not count
)

// weights are the names of experts' weights whose counts are read, the first of them that a layer has: all weights of an expert see the same tokens.
var weights = [...]string{"ffn_down_exps", "ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"}

// Counts are the tokens that went through each expert.
type Counts struct {
	Experts  event.Experts // Used is 0 where the counts of the layers do not tell it
	Datasets []string      // the texts, as the file names them
	Chunks   uint64        // pieces of them; 0 unknown
}

// Open reads a file. Errors: a file that cannot be read, is no imatrix, or has no experts.
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
		return nil, errors.New("the file is no imatrix")
	}
	layers, experts := shape(f)
	switch {
	case experts == 0:
		return nil, errors.New("the file counts no experts: the model is dense, or the file is older than mid 2025")
	case layers*experts > maxCells:
		return nil, fmt.Errorf("%d layers of %d experts are more than make sense", layers, experts)
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

// find is the counts of a layer, false if it has no experts.
func find(f *gguf.File, layer int) (gguf.Tensor, bool) {
	for _, w := range weights {
		if t, ok := f.Tensor("blk." + strconv.Itoa(layer) + "." + w + ".weight.counts"); ok {
			return t, true
		}
	}
	return gguf.Tensor{}, false
}

// shape is the number of layers up to the last one with experts, and that of experts.
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

// row reads the counts of a layer; of one without experts they stay 0.
func row(f *gguf.File, layer int, into []uint64) error {
	t, ok := find(f, layer)
	if !ok {
		return nil
	}
	data := f.Data(t)
	if t.Type.String() != "F32" || t.Elements() != uint64(len(into)) || uint64(len(data)) != 4*t.Elements() {
		return fmt.Errorf("%s has %d numbers of type %v, where the file has %d experts", t.Name, t.Elements(), t.Type, len(into))
	}
	for i := range into {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		if !(v >= 0 && v <= maxCount) {
			return fmt.Errorf("%s: %v is no count", t.Name, v)
		}
		into[i] = uint64(v)
	}
	return nil
}

// used is how many experts each token picked, if all layers with experts agree on it: their picks are tokens x used.
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

// About says in words what was counted.
func (c *Counts) About() string {
	words := "picks of the text that llama-imatrix was run on, and of no requests"
	if len(c.Datasets) > 0 {
		words += ": " + strings.Join(c.Datasets[:min(len(c.Datasets), 4)], ", ")
	}
	if c.Chunks > 0 {
		words += fmt.Sprintf(" (%d chunks)", c.Chunks)
	}
	return words
}
