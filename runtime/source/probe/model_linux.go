//go:build amd64 || arm64

package probe

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tokenizer"
)

// readModel describes the model that a process has open. endsText reports whether a token ends a text; it is nil if that
// is unknown. Without a known file both are zero.
func readModel(t *Target) (m event.Model, endsText func(int32) bool, err error) {
	if t.model == "" {
		return event.Model{}, nil, nil
	}
	file, err := gguf.Open(t.model)
	if err != nil {
		return event.Model{}, nil, fmt.Errorf("read model of process %d: %w", t.PID, err)
	}
	defer file.Close()
	m = file.Describe()
	m.Path, m.Name = t.Model, cmp.Or(m.Name, filepath.Base(t.Model))
	if words, err := tokenizer.New(file); err == nil { // otherwise of a kind that only llama.cpp knows
		endsText = words.IsEOG
	}
	return m, endsText, nil
}
