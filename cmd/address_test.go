package cmd

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestElsewhere: what record takes for an address, and what for a model, of which the file is there or not.
func TestElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("4711", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"8080": true, ":8080": true, "gpu1:8000": true, "pid:12": true, "http://gpu1": true, "unix:run.sock": true, "prometheus+http://gpu1:9090": true,
		"4711": false, "model.gguf": false, "folder/8080": false, "-": false, `C:\model.gguf`: false,
	} {
		if got := elsewhere(text); got != want {
			t.Errorf("%q is elsewhere: %v, want %v", text, got, want)
		}
	}
}

func TestAddressesAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"8080":                                 "http://127.0.0.1:8080",
		":8080":                                "http://127.0.0.1:8080",
		"gpu1:8000":                            "http://gpu1:8000",
		"gpu1:8000/v1":                         "http://gpu1:8000/v1",
		"[::1]:8000":                           "http://[::1]:8000",
		"http://gpu1":                          "http://gpu1",
		"http://gpu1:8000/v1/chat/completions": "http://gpu1:8000",
		"https://gpu1/llm/v1/completions/":     "https://gpu1/llm",
		"http://gpu1:8000/metrics":             "http://gpu1:8000",
		"gpu1:8000/v1/models":                  "http://gpu1:8000",
		"http://gpu1/openai/chat/completions":  "http://gpu1/openai",
		"http://chat/completions":              "http://chat/completions",
		"tcp:127.0.0.1:7070":                   "tcp:127.0.0.1:7070",
		"unix:/run/engine.sock":                "unix:/run/engine.sock",
		"prometheus+http://host:9090":          "prometheus+http://host:9090",
	} {
		if got, err := addressOf(context.Background(), text); err != nil || got != want {
			t.Errorf("%s is taken for %q, %v; want %q", text, got, err, want)
		}
	}
	for text, words := range map[string]string{
		"":                                 "write http://HOST:PORT",
		"0":                                "write http://HOST:PORT",
		"99999":                            "write http://HOST:PORT",
		"gpu1":                             "write http://HOST:PORT",
		"htp://x":                          "write http://HOST:PORT",
		"gpu1:http":                        "write http://HOST:PORT",
		"pid:":                             "the number of a process",
		"pid:-3":                           "the number of a process",
		"pid:llama":                        "the number of a process",
		"model.gguf":                       "write http://HOST:PORT",
		"pid:" + strconv.Itoa(os.Getpid()): "llmtop discover",
	} {
		if got, err := addressOf(context.Background(), text); err == nil || !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), words) {
			t.Errorf("%q is taken for %q, %v; want %q", text, got, err, words)
		}
	}
}
