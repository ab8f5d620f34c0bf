//go:build amd64 || arm64

package probe

import (
	"path/filepath"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// readModel returns the shape of the model that a process has open, and the tokens that end a text.
func readModel(t *Target) (event.Model, []int32, error) {
	if t.model == "" {
		return event.Model{}, nil, nil
	}
	file, err := gguf.Open(t.model)
	if err != nil {
		return event.Model{}, nil, err
	}
	defer file.Close()
	m := event.Model{Name: filepath.Base(t.Model), Path: t.Model}
	m.Architecture, _ = file.Metadata.String("general.architecture")
	number := func(key string) int {
		n, _ := file.Metadata.Uint(m.Architecture + "." + key)
		return int(n)
	}
	m.Layers, m.Width, m.Heads = number("block_count"), number("embedding_length"), number("attention.head_count")
	m.Experts, m.ExpertsUsed = number("expert_count"), number("expert_used_count")
	var ends []int32
	if id, err := file.Metadata.Uint("tokenizer.ggml.eos_token_id"); err == nil {
		ends = append(ends, int32(id))
	}
	return m, ends, nil
}
