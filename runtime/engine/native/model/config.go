// Package model computes transformers: it reads the shape and the weights of a model from a GGUF file and computes
// batches of tokens.
package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// Config is the shape of a model, from the metadata of its file.
type Config struct {
	Architecture string
	Name         string
	Layers       int
	Width        int // values of a token's hidden state
	Heads        int
	KVHeads      int // heads of keys and values; each is shared by Heads/KVHeads query heads
	HeadDim      int
	FeedForward  int // width of the feed-forward network, or of one expert
	Experts      int // 0: dense
	Used         int // experts per token; 0: dense
	Vocab        int
	TrainContext int
	Eps          float32 // of RMSNorm

	kind      architecture
	ropeBase  float64
	ropeScale float64
	attnScale float64 // multiplies queries and keys
}

// architecture holds the differences between the supported architectures.
type architecture struct {
	neox           bool // NEOX rotary pairs: values half a head apart instead of neighbours
	headNorm       bool // queries and keys are normalised per head
	ropeFreqs      bool // the file may have divisors of the rotary frequencies
	dense, experts bool // what the feed-forward network may be
	expertWidth    bool // the width of experts has a key of its own
}

var architectures = map[string]architecture{
	"llama":    {ropeFreqs: true, dense: true, experts: true},
	"qwen3":    {neox: true, headNorm: true, dense: true},
	"qwen3moe": {neox: true, headNorm: true, experts: true, expertWidth: true},
}

// Architectures returns the names of the supported architectures.
func Architectures() string {
	names := make([]string, 0, len(architectures))
	for name := range architectures {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Limits of a shape, far above any existing model. They prevent overflow in sizes computed from it.
const (
	maxLayers  = 4096
	maxWidth   = 1 << 20
	maxExperts = 1 << 14
	maxVocab   = 1 << 24
)

// reader reads values from the metadata under the architecture's prefix and keeps the first error.
type reader struct {
	m      gguf.Metadata
	prefix string
	err    error
}

func (r *reader) fail(key string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("read %s.%s: %w", r.prefix, key, err)
	}
}

// count reads an integer between low and high. def is the value of a missing key, and must not be 0 unless low is 0.
func (r *reader) count(key string, def, low, high int) int {
	v, err := r.m.Uint(r.prefix + "." + key)
	if err != nil && def >= low && !r.m.Has(r.prefix+"."+key) {
		return def
	}
	if err == nil && (v < uint64(low) || v > uint64(high)) {
		err = fmt.Errorf("%d is not between %d and %d", v, low, high)
	}
	if err != nil {
		r.fail(key, err)
		return low
	}
	return int(v)
}

func (r *reader) float(key string, def float64) float64 {
	v, err := gguf.OrDefault(r.m.Float, r.prefix+"."+key, def)
	if err != nil {
		r.fail(key, err)
	}
	return v
}

// ReadConfig reads the shape of the model in f. The error names the unsupported architecture, or the key that is
// missing or out of range.
func ReadConfig(f *gguf.File) (Config, error) {
	arch, err := f.Metadata.String("general.architecture")
	if err != nil {
		return Config{}, fmt.Errorf("read architecture: %w", err)
	}
	kind, ok := architectures[arch]
	if !ok {
		return Config{}, fmt.Errorf("architecture %s is not supported by the native engine; supported: %s", clean.Quote(arch), Architectures())
	}
	r := &reader{m: f.Metadata, prefix: arch}
	if err := r.checkKeys(); err != nil {
		return Config{}, err
	}
	c := Config{Architecture: arch, kind: kind}
	c.Name, _ = f.Metadata.String("general.name") // the name is optional
	c.Layers = r.count("block_count", 0, 1, maxLayers)
	c.Width = r.count("embedding_length", 0, 1, maxWidth)
	c.Heads = r.count("attention.head_count", 0, 1, maxWidth)
	c.KVHeads = r.count("attention.head_count_kv", c.Heads, 1, maxWidth)
	c.HeadDim = r.count("attention.key_length", c.Width/c.Heads, 1, maxWidth)
	c.TrainContext = r.count("context_length", 0, 1, 1<<30)
	c.Eps = float32(r.float("attention.layer_norm_rms_epsilon", 0)) // required: 0 is out of range
	c.Experts = r.count("expert_count", 0, 0, maxExperts)
	c.Used = r.count("expert_used_count", 0, 0, maxExperts)
	c.FeedForward = r.count("feed_forward_length", 0, 0, maxWidth)
	if kind.expertWidth && c.Used > 0 {
		c.FeedForward = r.count("expert_feed_forward_length", c.FeedForward/c.Used, 1, maxWidth)
	}
	c.ropeBase = r.float("rope.freq_base", 10000)
	c.ropeScale = ropeScale(r)
	c.attnScale = r.float("rope.scaling.attn_factor", 1)
	if r.err != nil {
		return Config{}, r.err
	}
	return c, c.check(r)
}

// ropeScale returns the factor of linear position scaling; other kinds are an error. As in llama.cpp, a missing kind
// means linear, and a factor of 0 means none.
func ropeScale(r *reader) float64 {
	kind, err := gguf.OrDefault(r.m.String, r.prefix+".rope.scaling.type", "linear")
	switch {
	case err != nil:
		r.fail("rope.scaling.type", err)
	case kind == "linear":
		if factor := r.float("rope.scaling.factor", r.float("rope.scale_linear", 0)); factor != 0 {
			return factor
		}
	case kind != "none":
		r.fail("rope.scaling.type", fmt.Errorf("%s is not supported by the native engine; supported: none, linear", clean.Quote(kind)))
	}
	return 1
}

// check rejects inconsistent or unsupported shapes.
func (c *Config) check(r *reader) error {
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d heads cannot share %d KV heads evenly", c.Heads, c.KVHeads)
	case c.HeadDim*c.Heads > maxWidth:
		return fmt.Errorf("%d heads of %d values are too wide", c.Heads, c.HeadDim)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("heads of %d values cannot be rotated in pairs", c.HeadDim)
	case c.Used > c.Experts || c.Experts > 0 && c.Used < 1:
		return fmt.Errorf("%d of %d experts used", c.Used, c.Experts)
	case c.Dense() && !c.kind.dense, !c.Dense() && !c.kind.experts:
		return fmt.Errorf("architecture %s with %d experts is not supported", c.Architecture, c.Experts)
	case c.FeedForward < 1:
		return fmt.Errorf("feed-forward of width %d", c.FeedForward)
	}
	for _, v := range []struct {
		what string
		is   float64
	}{
		{"rotary base", c.ropeBase},
		{"rotary scale", c.ropeScale},
		{"attention factor", c.attnScale},
		{"epsilon of the norms", float64(c.Eps)},
	} {
		if !(v.is > 0 && v.is <= math.MaxFloat32) { // also rejects NaN
			return fmt.Errorf("%s %g is out of range", v.what, v.is)
		}
	}
	for _, v := range []struct {
		key string
		def int
	}{{"attention.value_length", c.Width / c.Heads}, {"rope.dimension_count", c.HeadDim}} {
		if length := r.count(v.key, v.def, 1, maxWidth); length != c.HeadDim && r.err == nil {
			return fmt.Errorf("%s.%s of %d with heads of %d is not supported by the native engine",
				r.prefix, v.key, length, c.HeadDim)
		}
	}
	return r.err
}

// Dense reports whether the model has no experts.
func (c *Config) Dense() bool { return c.Experts == 0 }
