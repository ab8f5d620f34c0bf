//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// readHeader describes a model file before the library loads it. A damaged header is an error here, so that the library
// does not see it.
func readHeader(path string) (m event.Model, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return event.Model{}, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if _, err := f.Metadata.String("general.architecture"); err != nil {
		return event.Model{}, err
	}
	return f.Describe(), nil
}
