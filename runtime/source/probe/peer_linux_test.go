//go:build amd64 || arm64

package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == ToggleCommand {
		if err := Toggle(os.Stdin, os.Stdout, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 5 && os.Args[1] == watchCommand {
		fmt.Fprintln(os.Stderr, watchUntilKilled(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needProbes skips a test where the machine does not permit probes.
func needProbes(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("probes need root")
	}
	if err := features.HaveProgramType(ebpf.Kprobe); err != nil {
		t.Skipf("probes need eBPF: %v", err)
	}
	if err := Permitted(); err != nil {
		t.Skipf("probes need tracefs: %v", err)
	}
}

// heard keeps events.
type heard struct {
	mu  sync.Mutex // guards all
	all []event.Event
}

func (h *heard) Emit(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

// wait returns the events once one satisfies done.
func (h *heard) wait(t *testing.T, what string, done func(event.Event) bool) []event.Event {
	t.Helper()
	for range 1000 {
		h.mu.Lock()
		all := slices.Clone(h.all)
		h.mu.Unlock()
		if slices.ContainsFunc(all, done) {
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited 10 s for %s", what)
	return nil
}

// observe watches a process until the test ends.
func observe(t *testing.T, pid int, clock engine.Clock, hooks engine.Hooks) *heard {
	t.Helper()
	target, err := Inspect(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(target, clock, hooks)
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.objects.DecodeEntry.Info()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h, ended := &heard{}, make(chan error)
	go func() { ended <- p.Run(ctx, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		id, _ := info.ID()
		if !eventually(func() bool {
			program, err := ebpf.NewProgramFromID(id)
			program.Close()
			return errors.Is(err, os.ErrNotExist)
		}) {
			t.Error("a program is left")
		}
	})
	h.wait(t, "the model", func(e event.Event) bool { return e.Kind == event.KindModel })
	for range 1000 { // the probe of picks is attached after the first look
		if hooks.Every != 1 || slices.Contains(patched(t, target), getRows) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(5 * pollEvery) // until the source knows
	return h
}

// reply is what llama-server answers.
type reply struct {
	Tokens  []int32 `json:"tokens"`
	Timings struct {
		Cached      int     `json:"cache_n"`
		Prompt      int     `json:"prompt_n"`
		PromptMS    float64 `json:"prompt_ms"`
		Predicted   int     `json:"predicted_n"`
		PredictedMS float64 `json:"predicted_ms"`
		Drafted     int     `json:"draft_n"`
		Accepted    int     `json:"draft_n_accepted"`
	} `json:"timings"`
}

func complete(t *testing.T, url string, body map[string]any) (r reply) {
	t.Helper()
	if err := post(t.Context(), url+"/completion", body, func(line []byte) error { return json.Unmarshal(line, &r) }); err != nil {
		t.Fatal(err)
	}
	return r
}

// post sends a request, and calls f for the answer, or for each message of a stream. It does so on a connection of its own:
// the server may close one that was idle.
func post(ctx context.Context, url string, body map[string]any, f func([]byte) error) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Close = true
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", got.StatusCode)
	}
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := bytes.TrimPrefix(lines.Bytes(), []byte("data: ")); len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// TestServer watches a real server: its tokens are those of the reply, and the picks of a prompt are those that llama.cpp
// gave in golden.json.
func TestServer(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--parallel", "2", "--threads", "1")
	h := observe(t, server.PID, engine.NewClock(), engine.Hooks{Experts: true, Every: 1})

	var golden struct {
		Texts []struct {
			Tokens  []int32
			Experts [][][]int32 // [layer][position]
		}
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "engine", "native", "testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	text := golden.Texts[0]
	want := complete(t, server.URL, map[string]any{"prompt": text.Tokens, "n_predict": 20, "temperature": 0, "ignore_eos": true, "return_tokens": true})
	all := h.wait(t, "the end", func(e event.Event) bool { return e.Kind == event.KindRequest && e.State == event.StateFinished })
	var got []int32
	var experts *event.Experts
	for _, e := range all {
		switch e.Kind {
		case event.KindToken:
			got = append(got, e.ID)
		case event.KindExperts:
			experts, _ = e.Data.(*event.Experts)
		}
	}
	if !slices.Equal(got, want.Tokens) || len(got) != 20 {
		t.Errorf("tokens %v, want those of the reply %v", got, want.Tokens)
	}
	if experts == nil {
		t.Fatal("no picks")
	}
	comparePicks(t, experts, text.Experts)
}

// comparePicks compares the picks of a prompt in all layers but the last, which computes only the last row. Another
// processor rounds in another way, so that a few picks may differ.
func comparePicks(t *testing.T, got *event.Experts, want [][][]int32) {
	t.Helper()
	different, total := 0, 0
	for layer := range len(want) - 1 {
		counts := make([]int, got.Experts)
		for _, picks := range want[layer] {
			for _, x := range picks {
				counts[x]++
				total++
			}
		}
		for x, n := range counts {
			different += max(n-int(got.Prompt[layer*got.Experts+x]), int(got.Prompt[layer*got.Experts+x])-n)
		}
	}
	if total == 0 || different*100 > total*2 {
		t.Errorf("%d of %d picks differ from golden.json", different, total)
	}
	t.Logf("%d of %d picks differ", different, total)
}
