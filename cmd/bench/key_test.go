package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/cmd/files"
)

// TestKeys checks which key a server gets: $OPENAI_API_KEY is not sent unencrypted to another machine.
func TestKeys(t *testing.T) {
	const at = "http://gpu1.example:8000"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LLMTOP_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "sk-openai")
	for r, want := range map[*target]string{
		{at: at}:                     "",
		{at: "https://gpu1.example"}: "sk-openai",
		{at: "http://127.0.0.1:1"}:   "sk-openai",
		{at: at, secret: files.APIKey{File: file, OverHTTP: true}}: "sk-secret",
		{at: "https://x", secret: files.APIKey{File: file}}:        "sk-secret",
		{at: "http://localhost", secret: files.APIKey{File: file}}: "sk-secret",
	} {
		if got, err := r.key(); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", r.at, got, err, want)
		}
	}
}
