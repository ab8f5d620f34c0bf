package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnencryptedKeys checks that a key goes to another machine, or a Prometheus, only over HTTPS or with
// --api-key-over-http.
func TestUnencryptedKeys(t *testing.T) {
	for at, clear := range map[string]bool{
		"http://127.0.0.1:8000": false, "http://localhost:8000/v1": false, "http://[::1]:8000": false, "https://gpu1": false, "unix:/x": false,
		"http://gpu1:8000": true, "http://10.0.0.1": true, "prometheus+http://metrics:9090": true, "prometheus+https://metrics": false,
	} {
		if got := unencrypted(at); got != clear {
			t.Errorf("%s: %v", at, got)
		}
		for _, plain := range []bool{false, true} {
			k := serverKey{overHTTP: plain}
			err := k.check("attach", "sk-secret", "http://127.0.0.1:1", at)
			if (err != nil) != (clear && !plain) || err != nil && (strings.Contains(err.Error(), "secret") || exitCode(err) != exitUsage) {
				t.Errorf("%s: %v", at, err)
			}
			if err := k.check("attach", "", at); err != nil {
				t.Errorf("%s without a key: %v", at, err)
			}
		}
	}
}

// TestBenchDoesNotSendKeysUnencrypted checks that an explicit key is refused with a reason, and that $OPENAI_API_KEY is
// not sent.
func TestBenchDoesNotSendKeysUnencrypted(t *testing.T) {
	const at = "http://gpu1.example:8000"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := llmtop(t, "bench", at, "--api-key-file", file)
	if want := "bench http://gpu1.example:8000: the API key would be sent unencrypted"; err == nil || !strings.HasPrefix(err.Error(), want) || exitCode(err) != exitUsage || strings.Contains(stderr, "secret") {
		t.Errorf("%v, exit code %d", err, exitCode(err))
	}
	t.Setenv("LLMTOP_API_KEY", "")
	t.Setenv("OPENAI_API_KEY", "sk-openai")
	for r, want := range map[*benchTarget]string{
		{at: at}:                     "",
		{at: "https://gpu1.example"}: "sk-openai",
		{at: "http://127.0.0.1:1"}:   "sk-openai",
		{at: at, secret: serverKey{file: file, overHTTP: true}}: "sk-secret",
		{at: "https://x", secret: serverKey{file: file}}:        "sk-secret",
		{at: "http://localhost", secret: serverKey{file: file}}: "sk-secret",
	} {
		if got, err := r.key(); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", r.at, got, err, want)
		}
	}
}
