//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// block is the memory of a struct of the library. All platforms of this package are little-endian.
type block []byte

func (b block) int32(at int) int32       { return int32(binary.LittleEndian.Uint32(b[at:])) }
func (b block) setInt32(at int, v int32) { binary.LittleEndian.PutUint32(b[at:], uint32(v)) }
func (b block) word(at int) uint64       { return binary.LittleEndian.Uint64(b[at:]) }
func (b block) setWord(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
func (b block) setBool(at int)           { b[at] = 1 }

// layout holds the offsets of fields in the structs that the library passes by value, in bytes. They are the same on
// all platforms of this package. Fields that are not listed keep their defaults.
type layout struct {
	releases []release
	model    modelLayout
	context  contextLayout
	// defaults that the library must report before any field is written
	modelDefaults, contextDefaults []fieldDefault
}

// release is a version of the libraries as they report it, without "-dev".
type release struct{ llama, ggml string }

func (r release) String() string { return fmt.Sprintf("%s (ggml %s)", r.llama, r.ggml) }

// modelLayout is struct llama_model_params.
type modelLayout struct {
	size                                   int
	gpuLayers, loadMode, progress, noAlloc int
}

// contextLayout is struct llama_context_params.
type contextLayout struct {
	size                                           int
	context, batch, ubatch, sequences, outputs     int
	threads, threadsBatch, eval, evalData, unified int
}

// fieldDefault is a field and its default.
type fieldDefault struct {
	name string
	at   int
	want int32 // the bits, if it is a float
}

// loadModeNone is LLAMA_LOAD_MODE_NONE: read the file instead of mapping it.
const loadModeNone = 0

// minusOne is the bit pattern of the float -1.
const minusOne = -0x40800000

// layouts are the layouts of all supported releases.
var layouts = []layout{
	{
		releases: []release{{"0.5.0", "0.25.1"}, {"0.4.0", "0.23.0"}},
		model:    modelLayout{size: 80, gpuLayers: 16, loadMode: 24, progress: 48, noAlloc: 76},
		context: contextLayout{
			size: 160, context: 0, batch: 4, ubatch: 8, sequences: 12, outputs: 20, threads: 28, threadsBatch: 32,
			eval: 88, evalData: 96, unified: 133,
		},
		modelDefaults: []fieldDefault{
			{"devices", 0, 0},
			{"n_gpu_layers", 16, -1},
			{"split_mode", 20, 1},
			{"load_mode", 24, -1},
			{"main_gpu", 32, 0},
			{"tensor_split", 40, 0},
			{"progress_callback", 48, 0},
			{"kv_overrides", 64, 0},
			{"use_extra_bufts", 72, 0x10000},
		},
		contextDefaults: []fieldDefault{
			{"n_ctx", 0, 512},
			{"n_batch", 4, 2048},
			{"n_ubatch", 8, 512},
			{"n_seq_max", 12, 1},
			{"n_threads", 28, 4},
			{"n_threads_batch", 32, 4},
			{"rope_scaling_type", 40, -1},
			{"pooling_type", 44, -1},
			{"attention_type", 48, -1},
			{"flash_attn_type", 52, -1},
			{"yarn_ext_factor", 64, minusOne},
			{"defrag_thold", 84, minusOne},
			{"cb_eval", 88, 0},
			{"type_k", 104, 1},
			{"type_v", 108, 1},
			{"abort_callback", 112, 0},
			{"samplers", 136, 0},
		},
	},
}

// layoutOf returns the layout of a release. The error lists the supported releases.
func layoutOf(r release) (*layout, error) {
	r.llama, r.ggml = strings.TrimSuffix(r.llama, "-dev"), strings.TrimSuffix(r.ggml, "-dev")
	var names []string
	for i := range layouts {
		if slices.Contains(layouts[i].releases, r) {
			return &layouts[i], nil
		}
		for _, supported := range layouts[i].releases {
			names = append(names, supported.String())
		}
	}
	return nil, fmt.Errorf("version %v is not supported; supported are %s", r, strings.Join(names, ", "))
}

// guard compares the defaults that the library reports with those of the layout.
func (l *layout) guard(r release, model, context block) error {
	for _, s := range []struct {
		name   string
		size   int
		is     block
		fields []fieldDefault
	}{
		{"llama_model_params", l.model.size, model, l.modelDefaults},
		{"llama_context_params", l.context.size, context, l.contextDefaults},
	} {
		for _, k := range s.fields {
			if got := s.is.int32(k.at); got != k.want {
				return fmt.Errorf("struct %s is not that of %v: the default of %s is %d, want %d", s.name, r, k.name, got, k.want)
			}
		}
		for i, b := range s.is[s.size:] {
			if b != 0 {
				return fmt.Errorf("struct %s is not that of %v: it is longer than %d bytes (%#x at %d)", s.name, r, s.size, b, s.size+i)
			}
		}
	}
	return nil
}
