package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
	"github.com/llmtop/llmtop/runtime/engine/native"

	goruntime "runtime"
)

// foreign writes the built-in model with a pre-tokenizer that only llama.cpp supports.
func foreign(t *testing.T) string { return changed(t, "tokenizer.ggml.pre", "gpt-2", "phi-2") }

// changed writes the built-in model with the first old text after a mark replaced by one of the same length.
func changed(t *testing.T, mark, old, instead string) string {
	t.Helper()
	raw := bytes.Clone(native.DemoModel())
	at := bytes.Index(raw, []byte(mark))
	at += bytes.Index(raw[at:], []byte(old))
	copy(raw[at:], instead)
	path := filepath.Join(t.TempDir(), "foreign.gguf")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ours writes the built-in model to a file.
func ours(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ours.gguf")
	if err := os.WriteFile(path, native.DemoModel(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChoice(t *testing.T) {
	libraries := usableLibraries(t)
	notes := filepath.Join(t.TempDir(), "notes.gguf")
	if err := os.WriteFile(notes, []byte("GG"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine, model, libraries string
		want                     chosen
		mistake                  string
	}{
		{engine: "auto", want: chosen{name: engineNative}},
		{engine: "native", model: foreign(t), want: chosen{name: engineNative}},
		{engine: "auto", model: ours(t), want: chosen{name: engineNative, why: "auto: native supports it"}},
		{engine: "auto", model: notes, want: chosen{name: engineNative}},
		{engine: "auto", model: "missing.gguf", want: chosen{name: engineNative}},
		{engine: "auto", model: foreign(t), libraries: libraries, want: chosen{
			name: engineLlama, why: `auto: read tokenizer: tokenizer.ggml.pre is "phi-2"`, libraries: libraries,
		}},
		{engine: "auto", model: changed(t, "qwen3moe.vocab_size", "vocab_size", "logit_bias"), libraries: libraries, want: chosen{
			name: engineLlama, why: `auto: metadata "qwen3moe.logit_bias" is not supported by the native engine`, libraries: libraries,
		}},
		{engine: "auto", model: foreign(t), libraries: t.TempDir(), mistake: `load model foreign.gguf: .*"phi-2".*; llamacpp: .*LLMTOP_LLAMA_DIR`},
		{engine: "llamacpp", model: ours(t), libraries: libraries, want: chosen{name: engineLlama, libraries: libraries}},
		{engine: "llamacpp", model: ours(t), libraries: t.TempDir(), mistake: "LLMTOP_LLAMA_DIR"},
		{engine: "llamacpp", libraries: libraries, mistake: "needs a model file"},
	} {
		t.Setenv("LLMTOP_LLAMA_DIR", c.libraries)
		of := Settings{engine: c.engine}
		got, err := of.choose(c.model)
		if slow := native.Slow(); slow != "" && c.want.name == engineNative { // this processor has no kernels
			c.want.why = strings.TrimPrefix(c.want.why+"; "+slow, "; ")
		}
		if c.mistake == "" && (err != nil || got != c.want) {
			t.Errorf("%s of %s is %+v, %v; want %+v", c.engine, c.model, got, err, c.want)
		}
		if c.mistake != "" && (exit.Code(err) != exit.CodeUsage || !matches(c.mistake, err.Error())) {
			t.Errorf("%s of %s: %v, want %q", c.engine, c.model, err, c.mistake)
		}
	}
}

// auto prefers llama.cpp for a model that native decodes more slowly, if it is usable.
func TestAutoPrefersTheFaster(t *testing.T) {
	libraries := usableLibraries(t)
	slow := native.Speed{Ratio: 0.6, Type: "Q4_K", Kernels: "avx2"}
	for _, c := range []struct {
		pace      native.Speed
		libraries string
		want      chosen
	}{
		{slow, libraries, chosen{engineLlama, "auto: native decodes Q4_K at 0.60 of llama.cpp's speed with avx2 kernels", libraries}},
		{slow, t.TempDir(), chosen{name: engineNative, why: "auto: llama.cpp is not usable; native decodes Q4_K at 0.60 of llama.cpp's speed with avx2 kernels"}},
		{native.Speed{Ratio: native.LeastRatio}, libraries, chosen{name: engineNative, why: "auto: native supports it"}},
		{native.Speed{}, libraries, chosen{name: engineNative, why: "auto: native supports it"}},
	} {
		t.Setenv("LLMTOP_LLAMA_DIR", c.libraries)
		if got, err := auto("m.gguf", c.pace, nil); err != nil || got != c.want {
			t.Errorf("%+v: %+v, %v; want %+v", c.pace, got, err, c.want)
		}
	}
}

// usableLibraries returns a folder with what passes for llama.cpp's libraries.
func usableLibraries(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, data := range fixture.Libraries(fixture.Machine(goruntime.GOARCH)) {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// matches reports whether the parts of a pattern occur in a text, in this order.
func matches(pattern, text string) bool {
	for part := range strings.SplitSeq(pattern, ".*") {
		_, rest, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = rest
	}
	return true
}
