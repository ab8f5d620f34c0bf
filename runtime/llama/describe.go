//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// describe states what is loaded: what the library says of the model, and what the file's header says beyond that.
func (e *Engine) describe() {
	l, m, h := e.lib, e.model, &e.header
	a := event.Model{
		Name: e.meta("general.name"), Path: e.opt.Model, Architecture: e.meta("general.architecture"), Quantisation: h.quantisation,
		Parameters: int64(l.parameters(m)), Active: h.active, Bytes: int64(l.size(m)), WeightBytes: h.weightBytes,
		Layers: int(l.layers(m)), Width: int(l.width(m)), Heads: int(l.heads(m)), KVHeads: int(l.kvHeads(m)), HeadDim: h.headDim,
		Vocab: e.tokens, Experts: h.experts, ExpertsUsed: h.used, FeedForward: h.feedForward,
		Context: e.opt.Context, TrainContext: int(l.trainContext(m)), KVBytes: e.kvBytes(),
	}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(e.opt.Model), ".gguf")
	}
	e.about = a
	e.info = event.Engine{
		Name: "llama.cpp", Version: fmt.Sprintf("%v, %s", l.release, l.commit), Device: e.deviceInfo(), Slots: e.opt.Slots,
	}
}

// meta is a value of the model's metadata as text, "" without it.
func (e *Engine) meta(key string) string {
	buf := make([]byte, 1024)
	n := e.lib.meta(e.model, key, &buf[0], uintptr(len(buf)))
	if n < 0 {
		return ""
	}
	return string(buf[:min(int(n), len(buf)-1)])
}

// kvBytes is the KV cache that a token takes. The header's shape gives it to the byte for most models; the cache that the library
// makes, told in hundredths of MiB, gives it about for those with another kind of memory.
func (e *Engine) kvBytes() int64 {
	told := e.needs.kv / float64(e.opt.Slots*e.opt.Context)
	if counted := float64(e.header.kvBytes); told == 0 || math.Abs(counted-told) < 0.01*told+2 {
		return int64(e.header.kvBytes)
	}
	return int64(math.Round(told))
}
