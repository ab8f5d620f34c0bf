package native

import (
	"fmt"

	"github.com/shirou/gopsutil/v4/mem"

	"github.com/llmtop/llmtop/runtime/native/model"
)

// fits refuses a model that room bytes cannot hold: its weights, which the page cache must keep, its KV cache and its buffers.
// A room of 0 stands for what the machine has free, if that is known.
func fits(w *model.Weights, file int, o model.Options, room int64) error {
	if room == 0 {
		free, known := available()
		if !known {
			return nil
		}
		room = free
	}
	kv, buffers := w.Bytes(o)
	if float64(file)+kv+buffers > float64(room) {
		return fmt.Errorf("does not fit in memory: weights %s, KV cache %s for a context of %d, buffers %s; available %s",
			size(float64(file)), size(kv), o.Context, size(buffers), size(float64(room)))
	}
	return nil
}

// available is the memory that can be used without swapping, in bytes; false where the system does not say.
func available() (bytes int64, known bool) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, false
	}
	return min(int64(v.Available), cgroupRoom(cgroupRoot, int64(v.Available))), true
}

// size writes bytes for people.
func size(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.0f kB", n/1e3)
}
