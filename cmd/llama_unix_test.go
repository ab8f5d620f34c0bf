//go:build unix

package cmd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// withLlama skips a test where there are no libraries of llama.cpp.
func withLlama(t *testing.T) {
	t.Helper()
	if os.Getenv("LLMTOP_LLAMA_DIR") == "" {
		t.Skip(`needs llama.cpp's libraries: run eval "$(scripts/peers.sh)" first, which installs them and sets LLMTOP_LLAMA_DIR`)
	}
}

// builtIn is the built-in model as a file.
const builtIn = "../runtime/native/demo/llmtop-demo-moe-q8_0.gguf"

// reported runs a prompt and reads the report.
func reported(t *testing.T, args ...string) (r struct {
	Engine   struct{ Name, State, Reason string }
	Requests []struct {
		Text       string
		Components map[string]float64 `json:"ttft_components_s"`
	}
	Experts struct {
		Decode struct {
			Tokens int
			Layers [][]int
		}
	}
	Host struct {
		Engine struct {
			PID int
			RSS float64 `json:"rss_bytes"`
		}
		Llmtop struct{ PID int }
	}
},
) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(path, append([]string{"run", "--headless", "--json", "-", "--temp", "0", "-p", "Call me Ishmael."}, args...)...)
	var said strings.Builder
	run.Stderr = &said
	out, err := run.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return r
}

// TestLlamaDoesTheSame runs a prompt on both engines.
func TestLlamaDoesTheSame(t *testing.T) {
	withLlama(t)
	ours := reported(t, builtIn, "-n", "24", "--engine", "native", "--expert-sample", "1")
	theirs := reported(t, builtIn, "-n", "24", "--engine", "llamacpp", "--expert-sample", "1", "--threads", "1")
	if len(ours.Requests) != 1 || len(theirs.Requests) != 1 || ours.Requests[0].Text == "" || ours.Requests[0].Text != theirs.Requests[0].Text {
		t.Errorf("native has written %+v, llama.cpp %+v", ours.Requests, theirs.Requests)
	}
	if a, b := ours.Experts.Decode, theirs.Experts.Decode; a.Tokens != b.Tokens || len(a.Layers) != len(b.Layers) || b.Tokens == 0 {
		t.Errorf("native has counted picks of %d tokens, llama.cpp of %d", a.Tokens, b.Tokens)
	}
	if e := theirs.Engine; e.Name != "llama.cpp" || e.State != "ready" || e.Reason != "" || theirs.Requests[0].Components["prompt"] <= 0 {
		t.Errorf("%+v, %+v", e, theirs.Requests[0].Components)
	}
	if h := theirs.Host; h.Engine.PID == h.Llmtop.PID || h.Engine.PID == 0 || h.Engine.RSS < 12e6 { // the model alone has as much
		t.Errorf("%+v", h)
	}
}

// TestLlamaKilledOnTheScreen has llama.cpp run what the native engine cannot, and kills it.
func TestLlamaKilledOnTheScreen(t *testing.T) {
	withLlama(t)
	raw, err := os.ReadFile(builtIn)
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "foreign.gguf") // has a pre-tokenizer that only llama.cpp knows
	before, after, _ := strings.Cut(string(raw), "tokenizer.ggml.pre")
	raw = []byte(before + "tokenizer.ggml.pre" + strings.Replace(after, "gpt-2", "phi-2", 1))
	if err := os.WriteFile(model, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, 160, 45, "run", model, "--pace", "20", "-n", "1000", "-p", "Call me Ishmael.")
	p.waitFor(t, "live", "llama.cpp", "auto: ", "running")
	send(t, engineOf(t, p.cmd.Process.Pid), syscall.SIGABRT)
	p.waitFor(t, "failed", "SIGABRT", "1 failed")
	p.keys(t, "q")
	if code := p.exit(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
