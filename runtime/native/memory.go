package native

import (
	"fmt"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/llmtop/llmtop/runtime/native/model"
)

// maxContext bounds a context before anything is computed from it.
const maxContext = 1 << 24

// fits refuses a model that the machine's free memory cannot hold: its weights, which the page cache must keep, its KV cache and
// its buffers.
func fits(w *model.Weights, file int64, o model.Options) error {
	if o.Context < 1 || o.Context > maxContext {
		return fmt.Errorf("a context of %d tokens is out of range: 1 to %d", o.Context, maxContext)
	}
	kv, buffers := w.Bytes(o)
	free, known := available()
	if known && file+kv+buffers > free {
		return fmt.Errorf("does not fit in memory: weights %s, KV cache %s for a context of %d, buffers %s; available %s",
			size(file), size(kv), o.Context, size(buffers), size(free))
	}
	return nil
}

// available is the memory that can be used without swapping, in bytes; false where the system does not say.
func available() (bytes int64, known bool) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, false
	}
	return min(int64(v.Available), cgroupRoom(int64(v.Available))), true
}

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d kB", n/1e3)
}
