//go:build unix

package program_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/cmd/local/fixture"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// withLlama skips a test without llama.cpp libraries.
func withLlama(t *testing.T) {
	t.Helper()
	if os.Getenv("LLMTOP_LLAMA_DIR") == "" {
		t.Skip(`needs llama.cpp's libraries: run eval "$(scripts/peers.sh)" first, which installs them and sets LLMTOP_LLAMA_DIR`)
	}
}

// builtIn is the file of the built-in model.
const builtIn = "../../runtime/engine/native/demo/llmtop-demo-moe-q8_0.gguf"

// llamaReport is the part of a report that the tests below read.
type llamaReport struct {
	Partial  bool
	Engine   struct{ Name, State, Reason string }
	Requests []struct {
		State      string
		Text       string
		Prompt     int `json:"prompt_tokens"`
		Tokens     []struct{ ID int32 }
		Components map[string]float64 `json:"ttft_components_s"`
	}
	Experts struct {
		EveryN         int `json:"every_n"`
		Prompt, Decode struct {
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
}

// reported runs prompts and returns the report.
func reported(t *testing.T, args ...string) (r llamaReport) {
	t.Helper()
	path := binary(t)
	run := exec.Command(path, append([]string{"run", "--headless", "--json", "-", "--temp", "0"}, args...)...)
	var stderr strings.Builder
	run.Stderr = &stderr
	out, err := run.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return r
}

// TestLlamaLikeGolden continues the prompts of golden.json with llama.cpp and checks their tokens, router picks and
// texts, except where two experts are nearly equal. In the last layer llama.cpp computes only the last row of a prompt.
func TestLlamaLikeGolden(t *testing.T) {
	t.Parallel()
	withLlama(t)
	var golden struct {
		Texts []struct {
			Experts [][][]int // [layer][position]
			Prompt  string    `json:"greedy_prompt_text"`
			IDs     []int32   `json:"greedy_prompt_tokens"`
			Greedy  []int32   `json:"greedy_tokens"`
		}
	}
	raw, err := os.ReadFile("../../runtime/engine/native/testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(raw, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{builtIn, "-n", "64", "--engine", "llamacpp", "--expert-sample", "1", "--threads", "1"}
	var picks [8][16]int
	for _, text := range golden.Texts {
		args = append(args, "-p", text.Prompt)
		for layer, positions := range text.Experts {
			for _, experts := range positions[:len(text.IDs)] {
				for _, expert := range experts {
					picks[layer][expert]++
				}
			}
		}
	}
	r := reported(t, args...)
	if len(r.Requests) != len(golden.Texts) || len(r.Experts.Prompt.Layers) != len(picks) {
		t.Fatalf("%d requests, %d layers", len(r.Requests), len(r.Experts.Prompt.Layers))
	}
	for i, text := range golden.Texts {
		var ids []int32
		for _, token := range r.Requests[i].Tokens {
			ids = append(ids, token.ID)
		}
		if !slices.Equal(ids, text.Greedy) || r.Requests[i].Prompt != len(text.IDs) {
			t.Errorf("%q: %d tokens go on with\n%v, want %d and\n%v", text.Prompt, r.Requests[i].Prompt, ids, len(text.IDs), text.Greedy)
		}
	}
	for layer := range len(picks) - 1 {
		got, other, all := r.Experts.Prompt.Layers[layer], 0, 0
		for expert, n := range picks[layer] {
			other, all = other+max(got[expert]-n, n-got[expert]), all+n
		}
		if other > all/20 { // a changed pick counts twice; golden.json used other batch sizes, which round differently
			t.Errorf("layer %d has picked %v, want %v", layer, got, picks[layer])
		}
	}
	if e := r.Engine; e.Name != "llama.cpp" || e.State != "stopped" || e.Reason != "plain" || r.Requests[0].Components["prompt"] <= 0 {
		t.Errorf("%+v, %+v", e, r.Requests[0].Components)
	}
	if h := r.Host; h.Engine.PID == h.Llmtop.PID || h.Engine.PID == 0 || h.Engine.RSS < 12e6 { // the model alone needs that much
		t.Errorf("%+v", h)
	}
}

// TestLlamaChats checks that both engines use the template of an instruct model.
func TestLlamaChats(t *testing.T) {
	t.Parallel()
	withLlama(t)
	for _, bos := range []bool{false, true} { // whether the tokenizer adds the BOS that the template contains
		model := fixture.Instruct(t, map[string]any{"tokenizer.chat_template": fixture.Template, "tokenizer.ggml.add_bos_token": bos})
		ours := reported(t, model, "-n", "4", "-p", "Who are you?", "--text")
		theirs := reported(t, model, "-n", "4", "-p", "Who are you?", "--text", "--engine", "llamacpp", "--threads", "1")
		raw := reported(t, model, "-n", "4", "-p", "Who are you?", "--text", "--engine", "llamacpp", "--threads", "1", "--raw")
		a, b, c := ours.Requests[0], theirs.Requests[0], raw.Requests[0]
		if a.Prompt != b.Prompt || a.Text != b.Text || a.Text == "" || c.Prompt >= b.Prompt {
			t.Errorf("BOS %v: native goes on after %d tokens with %q, llama.cpp after %d with %q, raw after %d", bos, a.Prompt, a.Text, b.Prompt, b.Text, c.Prompt)
		}
		if theirs.Engine.Reason != "chat" || raw.Engine.Reason != "plain (--raw)" || !strings.HasPrefix(ours.Engine.Reason, "chat; auto: ") {
			t.Errorf("%q, %q, %q", ours.Engine.Reason, theirs.Engine.Reason, raw.Engine.Reason)
		}
	}
}

// foreign writes the built-in model with a pre-tokenizer that only llama.cpp supports.
func foreign(t *testing.T) string {
	t.Helper()
	return fixture.Instruct(t, map[string]any{"tokenizer.ggml.pre": "phi-2"})
}

// TestLlamaOnTheScreen runs a model that only llama.cpp supports, sampling experts in 1 of N steps, and stops,
// continues and kills the engine during a request. The data stays until the user quits.
func TestLlamaOnTheScreen(t *testing.T) {
	t.Parallel()
	withLlama(t)
	p := start(t, 170, 45, "run", foreign(t), "--expert-sample", "3", "--pace", "20", "-n", "1000", "--seed", "3", "-p", "Call me Ishmael.")
	p.waitFor(t, "live", "llama.cpp", "auto: ", "running", "1 step in 3")
	engine := engineOf(t, p.cmd.Process.Pid)
	send(t, engine, syscall.SIGSTOP)
	p.waitFor(t, "STALE since")
	send(t, engine, syscall.SIGCONT)
	p.waitFor(t, "live")
	send(t, engine, syscall.SIGKILL)
	p.waitFor(t, "failed", "killed (SIGKILL)", "1 failed", "Call me Ishmael.")
	p.keys(t, "q")
	if code := p.exit(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestLlamaConversation types two questions. The second continues the first, mostly from the KV cache.
func TestLlamaConversation(t *testing.T) {
	t.Parallel()
	withLlama(t)
	path := binary(t)
	model := fixture.Instruct(t, map[string]any{"tokenizer.chat_template": fixture.Template})
	recording := filepath.Join(t.TempDir(), "session.llmtop")
	p := start(t, 170, 45, "run", model, "--engine", "llamacpp", "-n", "12", "--seed", "3", "--record", recording)
	p.waitFor(t, "idle", "chat")
	for i, question := range []string{"Who are you?", "And then?"} {
		p.keys(t, "p")
		p.waitFor(t, "Prompt")
		p.keys(t, question+"\r")
		p.waitFor(t, fmt.Sprint(i+1, " done"))
	}
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out, err := exec.Command(path, "replay", "--headless", "--json", "-", recording).Output()
	var report struct {
		Requests []struct {
			Prompt int `json:"prompt_tokens"`
			Cached int `json:"cached_tokens"`
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &report)
	}
	if err != nil || len(report.Requests) != 2 {
		t.Fatalf("%v: %.500s", err, out)
	}
	first, second := report.Requests[0], report.Requests[1] // at the start of the answer, text may be tokenized differently the second time
	if first.Cached != 0 || second.Cached < first.Prompt-1 || second.Prompt <= first.Prompt {
		t.Errorf("of %d and %d tokens %d and %d are cached", first.Prompt, second.Prompt, first.Cached, second.Cached)
	}
}

// TestLlamaAborts runs a model that makes llama.cpp abort: more experts per token than experts. The error line contains
// its message, and the log follows.
func TestLlamaAborts(t *testing.T) {
	t.Parallel()
	withLlama(t)
	path := binary(t)
	_, err := exec.Command(path, "run", fixture.Instruct(t, map[string]any{"qwen3moe.expert_used_count": uint32(17)}), "--engine", "llamacpp",
		"--headless", "-p", "x").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(exit.Stderr), "\n")
	if exit.ExitCode() != 1 || !strings.HasPrefix(first, "llmtop: the engine gave up: llama-model.cpp:") ||
		!strings.Contains(first, "GGML_ASSERT") || !strings.Contains(rest, "GGML_ASSERT") || strings.Contains(rest, "goroutine") {
		t.Errorf("exit code %d\n%s", exit.ExitCode(), exit.Stderr)
	}
}

// TestLlamaOps times the operations: all layers multiply matrices, timing has a cost, and the recording has everything.
func TestLlamaOps(t *testing.T) {
	t.Parallel()
	withLlama(t)
	path := binary(t)
	recording := filepath.Join(t.TempDir(), "run.llmtop")
	live := timesOf(t, exec.Command(path, "run", builtIn, "--engine", "llamacpp", "--ops", "--headless", "--json", "-", "--record", recording,
		"-n", "64", "--seed", "3", "-p", "Call me Ishmael."))
	layers := map[int]bool{}
	for _, v := range live.Times {
		if v.Op == "MUL_MAT" && v.Layer != nil && v.Calls >= live.Passes && v.Time.V > 0 {
			layers[*v.Layer] = true
		}
	}
	if live.Passes < 10 || live.Slowdown.V <= 0 || len(layers) != 8 {
		t.Errorf("%+v", live)
	}
	if diff := cmp.Diff(live, timesOf(t, exec.Command(path, "replay", recording, "--headless", "--json", "-"))); diff != "" {
		t.Errorf("-live +replay\n%s", diff)
	}
}

// timesOf returns the operation times in the report that a command writes to standard output.
func timesOf(t *testing.T, c *exec.Cmd) *report.Ops {
	t.Helper()
	out, err := c.Output()
	var got report.Report
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil || got.Ops == nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	return got.Ops
}

// TestLlamaSampled checks that a reader of a served engine can choose in which steps picks are counted.
func TestLlamaSampled(t *testing.T) {
	t.Parallel()
	withLlama(t)
	path := binary(t)
	at := "unix:" + filepath.Join(t.TempDir(), "engine.sock")
	serve := exec.Command(path, "serve", builtIn, "--engine", "llamacpp", "--listen", at)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	client, err := socket.Dial(at, "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	intervals := make(chan int, 1000)
	go func() { _ = client.Run(t.Context(), everyN(intervals)) }()
	for end := time.Now().Add(30 * time.Second); !client.Offers().Has(event.CapSample | event.CapHooks | event.CapPrompt); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("offered is %b", client.Offers())
		}
	}
	if _, err := client.Control(t.Context(), &wire.Control{Type: wire.Sample, Every: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Generate(t.Context(), wire.Generation{Prompt: "Call me Ishmael.", MaxTokens: 50, IgnoreEOS: true}); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-intervals:
		if n != 7 {
			t.Errorf("picks are counted in 1 step in %d", n)
		}
	case <-time.After(30 * time.Second):
		t.Error("no picks arrived")
	}
}

// everyN receives router picks, and sends the sampling interval (1 of N steps) they were counted with.
type everyN chan int

// Emit implements event.Sink.
func (n everyN) Emit(e event.Event) {
	if x, ok := e.Data.(*event.Experts); ok {
		select {
		case n <- x.EveryN:
		default:
		}
	}
}
