// Package llama is the engine that drives llama.cpp: it loads libllama and libggml at run time, without cgo, and computes any model
// that they know on any of their devices.
//
// The structs that llama.h passes by value change from release to release, so the package knows the layout of single releases,
// reads from the library which one it is, and checks the defaults of known fields before it writes any.
//
// The build tag nollama leaves the libraries' side out, for programs that must not load any; Open then only says so.
package llama

import (
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/llmtop/llmtop/runtime"
)

// Options configure an Engine. Model and Libraries are required; the zero value of the rest is a sensible default.
type Options struct {
	Model     string // path of a GGUF file, or of the first part of a split one
	Libraries string // folder of libllama, libggml and the backends

	Slots     int   // sequences side by side; 0: 1
	Context   int   // tokens of each sequence; 0: what the model was trained with, at most DefaultContext
	Batch     int   // rows of a batch, at least one for each slot; 0: DefaultBatch
	Logits    int   // rows of a batch that may want logits, at least one for each slot; 0: one for each slot
	Threads   int   // that compute on the CPU; 0: one for each processor that Go may use
	GPULayers int   // layers on a GPU, where there is one; 0: as many as the model has, below 0: none
	Memory    int64 // bytes of the host's memory that the model may take; 0: what the machine has free

	Report   func(runtime.LoadStage)           // is told of each stage of the load as it ends; nil: nobody is
	Progress func(share float64) (goOn bool)   // is told how much of the weights is loaded, and may end the load; not on Windows
	Log      func(level LogLevel, line string) // takes the library's log, from any thread; nil: nobody does
	Fatal    func(line string)                 // is told why when the library is about to abort the process; nil: that goes to Log
}

const (
	// DefaultContext bounds the context of models that were trained with a longer one.
	DefaultContext = 4096
	// DefaultBatch is llama.cpp's own: the rows that it computes together.
	DefaultBatch = 512
)

// LogLevel grades the lines of the library's log.
type LogLevel uint8

// The levels, as in ggml.h.
const (
	LogNone LogLevel = iota
	LogDebug
	LogInfo
	LogWarn
	LogError
)

var logLevelNames = [...]string{"none", "debug", "info", "warning", "error"}

// String is the level's name.
func (l LogLevel) String() string {
	if int(l) < len(logLevelNames) {
		return logLevelNames[l]
	}
	return logLevelNames[LogNone]
}

// ErrLoadEnded is the error of a load that Options.Progress ended.
var ErrLoadEnded = errors.New("the load was ended")

// settle fills in the defaults that do not depend on the model, and refuses what no machine is made for.
func (o *Options) settle() error {
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
