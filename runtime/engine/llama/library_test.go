//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFind finds the libraries by their names on all systems, and ignores other files.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		files string
		want  map[string]string
	}{
		{
			"libggml-base.so libggml-cpu-zen4.so libggml.v0.5.0.so libllama.v0.5.0.so libllama-common.so llama-addon.node",
			map[string]string{"ggml-base": "libggml-base.so", "ggml": "libggml.v0.5.0.so", "llama": "libllama.v0.5.0.so"},
		},
		{
			"libggml-base.dylib libggml-blas.so libggml.metal.v0.4.0.dylib libllama-common.dylib libllama.metal.v0.4.0.dylib",
			map[string]string{"ggml-base": "libggml-base.dylib", "ggml": "libggml.metal.v0.4.0.dylib", "llama": "libllama.metal.v0.4.0.dylib"},
		},
		{
			"ggml-base.dll ggml-cpu-x64.dll ggml.v0.4.0.dll llama-addon.lib llama.v0.4.0.dll llama-common.dll",
			map[string]string{"ggml-base": "ggml-base.dll", "ggml": "ggml.v0.4.0.dll", "llama": "llama.v0.4.0.dll"},
		},
		{
			"libllama.so libllama.so.0 libllama.so.0.5.0 libggml.so.0 libggml-base.so.0.25",
			map[string]string{"ggml-base": "libggml-base.so.0.25", "ggml": "libggml.so.0", "llama": "libllama.so"},
		},
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(c.files) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range c.want {
			if got, err := find(dir, name); err != nil || filepath.Base(got) != want {
				t.Errorf("%s of %s: %q, %v, want %q", name, c.files, got, err, want)
			}
		}
	}
	if _, err := find(t.TempDir(), "llama"); err == nil || !strings.Contains(err.Error(), "no library llama in the folder") {
		t.Errorf("in an empty folder: %v", err)
	}
	if _, err := find(filepath.Join(t.TempDir(), "none"), "llama"); err == nil {
		t.Error("found a library in a folder that does not exist")
	}
}

// TestNoLibrary: a file that is not a library is an error.
func TestNoLibrary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libggml-base.so", "libggml.so", "libllama.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no library"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := &library{dir: dir}
	if err := l.load(); err == nil || !strings.Contains(err.Error(), "load libggml-base.so: ") {
		t.Errorf("error %v", err)
	}
}
