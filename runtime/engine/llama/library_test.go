//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
