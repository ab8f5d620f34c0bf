package native

import (
	"fmt"

	"github.com/llmtop/llmtop/runtime/memory"
	"github.com/llmtop/llmtop/runtime/native/model"
)

// fits refuses a model that room bytes cannot hold: its weights, which the page cache must keep, its KV cache and its buffers.
// A room of 0 stands for what the machine has free, if that is known.
func fits(w *model.Weights, file int, o model.Options, room int64) error {
	if room == 0 {
		free, known := memory.Available()
		if !known {
			return nil
		}
		room = free
	}
	kv, buffers := w.Bytes(o)
	if float64(file)+kv+buffers > float64(room) {
		return fmt.Errorf("does not fit in memory: weights %s, KV cache %s for a context of %d, buffers %s; available %s",
			memory.Size(float64(file)), memory.Size(kv), o.Context, memory.Size(buffers), memory.Size(float64(room)))
	}
	return nil
}
