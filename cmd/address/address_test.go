package address

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/runtime/host"
)

// TestIsEngineAddress checks which arguments of record are addresses, and which are models because a file of that name
// exists.
func TestIsEngineAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("4711", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"8080": true, ":8080": true, "gpu1:8000": true, "pid:12": true, "http://gpu1": true, "unix:run.sock": true, "prometheus+http://gpu1:9090": true,
		"4711": false, "model.gguf": false, "folder/8080": false, "-": false, `C:\model.gguf`: false,
	} {
		if got := IsEngine(text); got != want {
			t.Errorf("IsEngine(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestParseAddress(t *testing.T) {
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
		"my-engine":                            "my-engine", // an event socket, which may come later
	} {
		if got, err := Parse(context.Background(), text); err != nil || got != want {
			t.Errorf("Parse(%s) = %q, %v; want %q", text, got, err, want)
		}
	}
	for text, words := range map[string]string{
		"":                                 "write http://HOST:PORT",
		"0":                                "write http://HOST:PORT",
		"99999":                            "write http://HOST:PORT",
		"10.0.0.4":                         "write http://HOST:PORT",
		"htp://x":                          "write http://HOST:PORT",
		"gpu1:http":                        "write http://HOST:PORT",
		"pid:":                             "the number of a process after pid:",
		"pid:-3":                           "the number of a process after pid:",
		"pid:llama":                        "the number of a process after pid:",
		"model.gguf":                       "write http://HOST:PORT",
		"pid:" + strconv.Itoa(os.Getpid()): "llmtop discover",
	} {
		if got, err := Parse(context.Background(), text); err == nil || !exit.IsUsage(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("Parse(%q) = %q, %v; want error %q", text, got, err, words)
		}
	}
}

// TestDiscoverVariable checks that an unknown value of $LLMTOP_DISCOVER is refused, not read as all.
func TestDiscoverVariable(t *testing.T) {
	for value, want := range map[string]string{
		"bogus": `$LLMTOP_DISCOVER "bogus": must be all, sockets or off`,
		"off":   "attach: without a terminal it needs an address, because $LLMTOP_DISCOVER is off",
	} {
		t.Setenv(DiscoverVariable, value)
		if _, _, err := Only(context.Background()); exit.Code(err) != exit.CodeUsage || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// TestParseAddressOfListener checks that the error for a process without a known engine names the tap of its port.
func TestParseAddressOfListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, known := host.Listeners("/proc/net"); !known {
		t.Skip("this system does not list who listens")
	}
	want := fmt.Sprintf("sudo llmtop tap %d", l.Addr().(*net.TCPAddr).Port)
	if _, err := Parse(t.Context(), fmt.Sprintf("pid:%d", os.Getpid())); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
