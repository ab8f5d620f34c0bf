package imatrix

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// written returns an imatrix file of two layers with experts and a dense layer between them.
func written(t testing.TB, change func(*gguf.Writer)) []byte {
	t.Helper()
	w := gguf.NewWriter(3).Set("general.type", "imatrix").Set("imatrix.chunk_count", uint32(4)).Set("imatrix.chunk_size", uint32(8))
	w.Set("imatrix.datasets", []string{"wiki.txt"})
	w.AddF32("blk.0.ffn_down_exps.weight.in_sum2", []uint64{2, 4}, make([]float32, 8))
	w.AddF32("blk.0.ffn_down_exps.weight.counts", []uint64{1, 4}, []float32{30, 10, 24, 0})
	w.AddF32("blk.1.ffn_down.weight.counts", []uint64{1, 1}, []float32{32})
	w.AddF32("blk.2.ffn_gate_exps.weight.counts", []uint64{1, 4}, []float32{16, 16, 16, 16})
	if change != nil {
		change(w)
	}
	out, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func file(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	c, err := Open(file(t, written(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	e := &c.Experts
	if e.Layers != 3 || e.Experts != 4 || e.Used != 2 || e.PromptTokens != 32 || !slices.Equal(e.Prompt, []uint64{30, 10, 24, 0, 0, 0, 0, 0, 16, 16, 16, 16}) {
		t.Errorf("%+v", e)
	}
	if want := "wiki.txt (4 chunks)"; !strings.Contains(c.Describe(), want) {
		t.Errorf("%q does not contain %q", c.Describe(), want)
	}
}

func TestOpenRefuses(t *testing.T) {
	dense, err := gguf.NewWriter(3).Set("general.type", "imatrix").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	model, err := gguf.NewWriter(3).Set("general.type", "model").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"counts no experts":      dense,
		"is not an imatrix file": model,
		"GGUF":                   []byte("hello"),
		"is not a count": written(t, func(w *gguf.Writer) {
			w.AddF32("blk.3.ffn_up_exps.weight.counts", []uint64{1, 4}, []float32{1, -2, 3, 4})
		}),
		"has 3 numbers": written(t, func(w *gguf.Writer) { w.AddF32("blk.3.ffn_up_exps.weight.counts", []uint64{1, 3}, []float32{1, 2, 3}) }),
	} {
		if _, err := Open(file(t, data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := gguf.Parse(data)
		if err != nil {
			return
		}
		if c, err := read(g); err == nil && (len(c.Experts.Prompt) != c.Experts.Layers*c.Experts.Experts || c.Experts.Used > c.Experts.Experts) {
			t.Errorf("%+v", c)
		}
	})
}
