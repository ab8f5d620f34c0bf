package native

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
)

// describe describes the loaded model.
func describe(w *model.Weights, f *gguf.File, opt Options) event.Model {
	m := f.Describe()
	m.Name, m.Vocab, m.Context = w.Name, w.Vocab, opt.Context
	m.KVBytes = int64(2 * 2 * w.Layers * w.KVHeads * w.HeadDim) // keys and values, as 16-bit floats
	if m.Path == "" {
		m.Path = builtIn
	}
	if m.Name == "" {
		m.Name = strings.TrimSuffix(baseName(m.Path), ".gguf")
	}
	return m
}

// baseName returns the last element of a path, with slashes or backslashes.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
