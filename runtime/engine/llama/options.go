// Package llama is an engine that uses llama.cpp: it loads libllama and libggml at run time, without cgo, and runs any
// decoder-only model that they support, on any of their devices.
//
// The structs that llama.h passes by value change between releases. The package therefore contains the layouts of
// supported releases, reads the release from the library, and compares the defaults of listed fields before it writes
// any field.
//
// The build tag nollama excludes the code that loads libraries; Open then returns an error.
package llama

import (
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/llmtop/llmtop/runtime/engine"
)

// Options configures an Engine. Model and Libraries are required; the zero value of the rest is a sensible default.
type Options struct {
	Model     string // path of a GGUF file, or of the first part of a split one
	Libraries string // folder of libllama, libggml and the backends

	Slots     int   // number of sequences; 0: 1
	Context   int   // tokens of each sequence; 0: as in training, at most DefaultContext
	Batch     int   // maximum number of rows of a batch, at least one per slot; 0: DefaultBatch
	Logits    int   // maximum number of rows with logits, at least one per slot; 0: one per slot
	Threads   int   // number of CPU threads; 0: one for each CPU that Go may use
	GPULayers int   // layers on a GPU, if there is one; 0: all, below 0: none
	Memory    int64 // memory of the host that the model may use, in bytes; 0: the free memory

	Report   func(engine.LoadStage)          // called after each stage of the load; may be nil
	Progress func(share float64) (goOn bool) // called with the loaded fraction; false ends the load; not on Windows
	Log      func(line string)               // called with the library's log without debugging, from any thread; may be nil
	Fatal    func(line string)               // called with the reason before the library aborts the process; nil: Log is
}

const (
	// DefaultContext limits the context of models that were trained with a longer one.
	DefaultContext = 4096
	// DefaultBatch is llama.cpp's default: the number of rows that it computes together.
	DefaultBatch = 512
)

// ErrLoadEnded means that Options.Progress ended the load.
var ErrLoadEnded = errors.New("the load was cancelled")

// setDefaults fills in the defaults that do not depend on the model, and validates ranges.
func (o *Options) setDefaults() error {
	o.Slots, o.Batch = orElse(o.Slots, 1), orElse(o.Batch, DefaultBatch)
	o.Batch, o.Logits = max(o.Batch, o.Slots), max(o.Logits, o.Slots)
	o.Threads = orElse(o.Threads, goruntime.GOMAXPROCS(0))
	for _, v := range []struct {
		what            string
		is, from, limit int
	}{
		{"tokens of context", o.Context, 0, 1 << 24},
		{"slots", o.Slots, 1, maxSlots},
		{"threads", o.Threads, 1, maxThreads},
		{"rows of a batch", o.Batch, 1, 1 << 16},
		{"rows that want logits", o.Logits, 1, o.Batch},
		{"tokens of context in all slots", o.Slots * o.Context, 0, 1 << 30},
	} {
		if v.is < v.from || v.is > v.limit {
			return fmt.Errorf("%d %s: must be %d to %d", v.is, v.what, v.from, v.limit)
		}
	}
	return nil
}

const (
	maxSlots   = 256 // LLAMA_MAX_SEQ
	maxThreads = 512 // GGML_MAX_N_THREADS
)

func orElse(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}
