package cmd

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAttachRefuses: what attach cannot use is one line, without secrets, and exit code 2.
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
	key, empty, lines, text := file("key", "sk-secret\n"), file("empty", " \n"), file("lines", "sk-secret\nsk-secret\n"), file("text", "hello")
	const server, other, prometheus = "http://127.0.0.1:1", "http://127.0.0.1:2", "prometheus+http://127.0.0.1:1"
	for want, args := range map[string][]string{
		"--zmq goes with the address of one server: llmtop attach":                    {"--zmq", "tcp://127.0.0.1:5557"},
		"--zmq goes with the address of one server: llmtop attach --zmq ":             {"--zmq", "tcp://127.0.0.1:5557", server, other},
		"--zmq goes with the address of one server":                                   {"--zmq", "tcp://127.0.0.1:5557", "unix:/x"},
		`--zmq: read address "127.0.0.1:5557": want tcp://HOST:PORT or`:               {"--zmq", "127.0.0.1:5557", server},
		"--probe=10ms: must be at least 1s":                                           {"--probe=10ms", server},
		`invalid argument "often" for "--probe"`:                                      {"--probe=often", server},
		"attach 30s is no address; to send a probe this often: --probe=30s":           {"--probe", "30s", server},
		"--probe is for servers: llmtop attach --probe":                               {"--probe", "unix:/x"},
		"--probe is for servers":                                                      {"--probe", prometheus},
		"--probe-model needs --probe":                                                 {"--probe-model", "m", server},
		"--drain is for servers of TensorRT-LLM":                                      {"--drain", "unix:/x"},
		"--imatrix: read imatrix: open model: open":                                   {"--imatrix", filepath.Join(dir, "missing"), server},
		"text is not a GGUF file":                                                     {"--imatrix", text, server},
		"read API key: open":                                                          {"--api-key-file", filepath.Join(dir, "missing"), server},
		"empty must hold one line":                                                    {"--api-key-file", empty, server},
		"lines must hold one line":                                                    {"--api-key-file", lines, server},
		"--api-key-file is for servers":                                               {"--api-key-file", key, "unix:/x"},
		"attach http://gpu1:8000: the API key would go over the network in the clear": {"--api-key-file", key, "http://gpu1:8000"},
		"attach prometheus+http://m:9090: the API key would go":                       {"--api-key-file", key, "prometheus+http://m:9090"},
		"--match: the label job is compared with what is not in double quotes":        {"--match", "job=vllm", prometheus},
		`--match: "~" is no label`:                                                    {"--match", "~", prometheus},
		"--match chooses targets of a Prometheus":                                     {"--match", `job="vllm"`, server},
		"attach h: write http://HOST:PORT for a server":                               {"u:sk-secret@h"},
		"must not hold a user or password":                                            {"http://sk-secret@127.0.0.1:1"},
		`address "http://127.0.0.1:1": it must end with its`:                          {"http://127.0.0.1:1?key=sk-secret"},
		`address "http://127.0.0.1:1/x": it must end with its`:                        {"prometheus+http://127.0.0.1:1/x?key=sk-secret"},
	} {
		out, said, err := llmtop(t, append([]string{"attach", "--metrics-listen", "127.0.0.1:0"}, args...)...)
		switch {
		case err == nil, !strings.Contains(err.Error(), want), strings.Contains(err.Error(), "\n"), exitCode(err) != exitUsage:
			t.Errorf("%q: %v, exit code %d; want %q", args, err, exitCode(err), want)
		case strings.Contains(err.Error()+out+said, "secret"):
			t.Errorf("%q tells the key: %v, %s%s", args, err, out, said)
		}
	}
}

// spokenWords is a place to write to that can be waited for.
type spokenWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *spokenWords) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *spokenWords) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestProxyWarnsOfWhatCanBeRead: once, at its start, where clients' keys go to another machine without https.
func TestProxyWarnsOfWhatCanBeRead(t *testing.T) {
	const warning = "clients' API keys too, can be read on the way"
	for to, warns := range map[string]bool{"http://gpu1.example:8000/v1": true, "https://gpu1.example": false, "http://127.0.0.1:1": false} {
		var said spokenWords
		ctx, stop := context.WithCancel(t.Context())
		c := newRootCommand()
		c.SetArgs([]string{"proxy", "--to", to, "--listen", "127.0.0.1:0", "--headless"})
		c.SetOut(io.Discard)
		c.SetErr(&said)
		ended := make(chan error, 1)
		go func() { ended <- c.ExecuteContext(ctx) }()
		for end := time.Now().Add(time.Minute); !strings.Contains(said.String(), "listening: ") && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		stop()
		<-ended
		if n := strings.Count(said.String(), warning); (n == 1) != warns || n > 1 {
			t.Errorf("--to %s says:\n%s", to, said.String())
		}
	}
}
