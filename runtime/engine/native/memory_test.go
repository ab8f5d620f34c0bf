package native

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/model"
)

// TestFits finds the smallest memory that the built-in model fits into, and checks the error below that.
func TestFits(t *testing.T) {
	f, err := gguf.Parse(DemoModel())
	if err != nil {
		t.Fatal(err)
	}
	w, err := model.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	o := model.Options{Context: 1024, Slots: 2, MaxBatch: 256, Threads: 2}
	kv, buffers := w.Bytes(o)
	if want := 2 * 1024 * 2048.; kv != want {
		t.Errorf("KV cache of %.0f bytes, want %.0f", kv, want)
	}
	room := int64(float64(f.Size()) + kv + buffers)
	if err := fits(w, f.Size(), o, room+1); err != nil {
		t.Error(err)
	}
	err = fits(w, f.Size(), o, room-1)
	if err == nil || !strings.HasPrefix(err.Error(), "does not fit in memory: weights 11.9 MB, KV cache 4.19 MB for a context of 1024, buffers ") {
		t.Errorf("a byte less than it needs: %v", err)
	}
}
