package native

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// fits returns an error if the model needs more than room bytes for its weights (which the page cache must hold), KV
// cache and buffers. room 0 means the machine's free memory, if available.
func fits(w *model.Weights, file int, o model.Options, room int64) error {
	if room == 0 {
		free, ok := cgroup.Available()
		if !ok {
			return nil
		}
		room = free
	}
	kv, buffers := w.Bytes(o)
	if float64(file)+kv+buffers > float64(room) {
		return fmt.Errorf("does not fit in memory: weights %s, KV cache %s for a context of %d, buffers %s; available %s",
			metric.Bytes(float64(file)), metric.Bytes(kv), o.Context, metric.Bytes(buffers), metric.Bytes(float64(room)))
	}
	return nil
}
