package cmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestAttachRefuses checks that attach refuses unusable input in one line, without secrets, with exit code 2.
func TestAttachRefuses(t *testing.T) {
	t.Setenv("LLMTOP_API_KEY", "")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, empty, lines := file("key", "sk-secret\n"), file("empty", " \n"), file("lines", "sk-secret\nsk-secret\n")
	const server, other, prometheus = "http://127.0.0.1:1", "http://127.0.0.1:2", "prometheus+http://127.0.0.1:1"
	for want, args := range map[string][]string{
		"--drain needs the address of a TensorRT-LLM server":                     {"--drain", "unix:/x"},
		"missing: no such file":                                                  {"--api-key-file", filepath.Join(dir, "missing"), server},
		"empty must hold one line":                                               {"--api-key-file", empty, server},
		"lines must hold one line":                                               {"--api-key-file", lines, server},
		"--api-key-file needs the address of a server":                           {"--api-key-file", key, "unix:/x"},
		"attach http://gpu1:8000: the API key would be sent unencrypted":         {"--api-key-file", key, "http://gpu1:8000"},
		"attach prometheus+http://m:9090: the API key would be sent unencrypted": {"--api-key-file", key, "prometheus+http://m:9090"},
		"--match: the value of label job is not in double quotes":                {"--match", "job=vllm", prometheus},
		`--match: "~" is not a label name`:                                       {"--match", "~", prometheus},
		"--match needs the address of a Prometheus":                              {"--match", `job="vllm"`, server},
		"attach h: write http://HOST:PORT for a server":                          {"u:sk-secret@h"},
		"remove the user and password":                                           {"http://sk-secret@127.0.0.1:1"},
		`address "http://127.0.0.1:1": remove the query`:                         {"http://127.0.0.1:1?key=sk-secret"},
		`address "http://127.0.0.1:1/x": remove the query`:                       {"prometheus+http://127.0.0.1:1/x?key=sk-secret"},
	} {
		out, stderr, err := llmtop(t, append([]string{"attach", "--metrics-listen", "127.0.0.1:0"}, args...)...)
		switch {
		case err == nil, !strings.Contains(err.Error(), want), strings.Contains(err.Error(), "\n"), exit.Code(err) != exit.CodeUsage:
			t.Errorf("%q: %v, exit code %d; want %q", args, err, exit.Code(err), want)
		case strings.Contains(err.Error()+out+stderr, "secret"):
			t.Errorf("%q shows the key: %v, %s%s", args, err, out, stderr)
		}
	}
}

// syncBuffer is a buffer for concurrent writers and readers.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestProxyWarnsOfUnencryptedKeys checks that the proxy warns once at its start if keys of clients go to another
// machine without HTTPS.
func TestProxyWarnsOfUnencryptedKeys(t *testing.T) {
	const warning = "are not encrypted, API keys of clients included"
	for to, warns := range map[string]bool{"http://gpu1.example:8000/v1": true, "https://gpu1.example": false, "http://127.0.0.1:1": false} {
		var stderr syncBuffer
		ctx, stop := context.WithCancel(t.Context())
		c := command(t, "proxy", "--to", to, "--listen", "127.0.0.1:0", "--headless")
		c.SetErr(&stderr)
		ended := make(chan error, 1)
		go func() { ended <- c.ExecuteContext(ctx) }()
		for end := time.Now().Add(time.Minute); !strings.Contains(stderr.String(), "listening: ") && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		stop()
		<-ended
		if n := strings.Count(stderr.String(), warning); (n == 1) != warns || n > 1 {
			t.Errorf("--to %s prints:\n%s", to, stderr.String())
		}
	}
}
