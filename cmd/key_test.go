package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestBenchRefusesUnencryptedKeys checks that an explicit key is refused with a reason.
func TestBenchRefusesUnencryptedKeys(t *testing.T) {
	const at = "http://gpu1.example:8000"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := llmtop(t, "bench", at, "--api-key-file", file)
	if want := "bench http://gpu1.example:8000: the API key would be sent unencrypted"; err == nil || !strings.HasPrefix(err.Error(), want) || exit.Code(err) != exit.CodeUsage || strings.Contains(stderr, "secret") {
		t.Errorf("%v, exit code %d", err, exit.Code(err))
	}
}
