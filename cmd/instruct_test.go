package cmd

import (
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/demo"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// Instruct writes the built-in model with added metadata, for example a chat template, and returns the file.
func Instruct(t testing.TB, set map[string]any) string {
	t.Helper()
	f, err := gguf.Parse(demo.Model())
	if err != nil {
		t.Fatal(err)
	}
	w := gguf.NewWriter(3)
	for key, kind := range f.Metadata.All() {
		if _, other := set[key]; !other {
			w.Set(key, metadata(t, f, key, kind))
		}
	}
	for key, v := range set {
		w.Set(key, v)
	}
	for _, v := range f.Tensors {
		w.Add(v.Name, v.Type, v.Dims, f.Data(v))
	}
	path := filepath.Join(t.TempDir(), "instruct.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// metadata returns the value of a key in a form that can be written.
func metadata(t testing.TB, f *gguf.File, key, kind string) (v any) {
	t.Helper()
	m, err := f.Metadata, error(nil)
	switch kind {
	case "string":
		v, err = m.String(key)
	case "bool":
		v, err = m.Bool(key)
	case "uint32":
		var n uint64
		n, err = m.Uint(key)
		v = uint32(n)
	case "float32":
		var x float64
		x, err = m.Float(key)
		v = float32(x)
	default:
		if v, err = m.Strings(key); err != nil {
			var all []int64
			all, err = m.Ints(key)
			ids := make([]int32, len(all))
			for i, n := range all {
				ids[i] = int32(n)
			}
			v = ids
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Template is a ChatML-like template with the only special token of the built-in model, with which it begins.
const Template = `{{ bos_token }}{% for m in messages %}{{ m.role + ': ' + m.content }}{{ eos_token if m.role == 'assistant' else '\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}assistant: {% endif %}`
