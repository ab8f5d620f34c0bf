//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// describe sets the descriptions of engine and model, from the library and from the file's header.
func (e *Engine) describe() {
	l, m, h := e.lib, e.model, &e.header
	a := event.Model{
		Name: e.meta("general.name"), Path: e.opt.Model, Architecture: e.meta("general.architecture"), Quantisation: h.Quantisation,
		Parameters: int64(l.parameters(m)), Active: h.Active, Bytes: int64(l.size(m)), WeightBytes: h.WeightBytes,
		Layers: int(l.layers(m)), Width: int(l.width(m)), Heads: int(l.heads(m)), KVHeads: int(l.kvHeads(m)), HeadDim: h.HeadDim,
		Vocab: e.tokens, Experts: h.Experts, ExpertsUsed: h.ExpertsUsed, FeedForward: h.FeedForward,
		Context: e.opt.Context, TrainContext: int(l.trainContext(m)), KVBytes: e.kvBytes(),
	}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(e.opt.Model), ".gguf")
	}
	e.modelInfo = a
	e.info = event.EngineInfo{
		Name: "llama.cpp", Version: fmt.Sprintf("%v, %s", l.release, l.commit), Device: e.deviceInfo(), Slots: e.opt.Slots, Caps: event.CapOps,
	}
}

// meta returns a value of the model's metadata as text, "" if it is missing.
func (e *Engine) meta(key string) string {
	buf := make([]byte, 1024)
	n := e.lib.meta(e.model, key, &buf[0], uintptr(len(buf)))
	if n < 0 {
		return ""
	}
	return string(buf[:min(int(n), len(buf)-1)])
}

// kvBytes returns the KV cache size of one token in bytes. For most models it is computed exactly from the header. For
// models with another kind of memory it is derived from the size of the library's cache, logged in 1/100 MiB.
func (e *Engine) kvBytes() int64 {
	tokens := float64(e.opt.Slots * e.opt.Context)
	measured, rounding := e.needs.kv/tokens, 0.01*(1<<20)/tokens
	if counted := float64(e.header.KVBytes); measured == 0 || math.Abs(counted-measured) < 0.01*measured+rounding {
		return e.header.KVBytes
	}
	return int64(math.Round(measured))
}
