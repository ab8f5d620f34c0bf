// Package python_test runs the tests of the Python emitter, and a Python program with llmtop's own client.
package python_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// interpreter returns a python3 that the emitter supports, or skips the test.
func interpreter(t testing.TB) string {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("the tests of the Python emitter need Unix sockets, which Python does not support on Windows")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	if !runs(python, "import sys; sys.exit(sys.version_info < (3, 9))") {
		t.Skipf("%s is older than Python 3.9", python)
	}
	return python
}

// another returns a Python besides the one on the path for which check succeeds, or skips the test.
func another(t *testing.T, what, check string) string {
	t.Helper()
	candidates := []string{interpreter(t), "python3.9", "/usr/bin/python3"}
	if home, err := os.UserHomeDir(); err == nil { // pyenv's commands run only enabled versions
		installed, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "*", "bin", "python3"))
		candidates = append(candidates, installed...)
	}
	for _, python := range candidates {
		if runs(python, check) {
			return python
		}
	}
	t.Skipf("%s is not installed: its tests were not run", what)
	return ""
}

func runs(python, code string) bool { return exec.Command(python, "-c", code).Run() == nil }

// unittests runs the tests in Python modules, by default all, and logs skipped tests with reasons.
func unittests(t *testing.T, python string, modules ...string) {
	t.Helper()
	out, err := exec.Command(python, append([]string{"-B", "-m", "unittest", "-v"}, modules...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "skipped") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if err != nil || !strings.Contains(string(out), "\nOK") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	unittests(t, interpreter(t))
}

// TestOldestPython runs all tests in the oldest supported version.
func TestOldestPython(t *testing.T) {
	t.Parallel()
	unittests(t, another(t, "Python 3.9", "import sys; sys.exit(sys.version_info[:2] != (3, 9))"))
}

func TestTorch(t *testing.T) {
	t.Parallel()
	unittests(t, another(t, "Python with torch", "import torch"), "test_torch")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	unittests(t, another(t, "Python with pip, setuptools and wheel", "import setuptools, wheel, pip"), "test_readme")
}

func TestTransformers(t *testing.T) {
	t.Parallel()
	unittests(t, another(t, "Python with torch and transformers", "import torch, transformers"), "test_transformers", "test_readme")
}

// done is the report of testdata/engine.py about its work.
type done struct {
	Requests     int      `json:"requests"`
	Tokens       uint64   `json:"tokens"`
	PromptTokens uint64   `json:"prompt_tokens"`
	Picks        []uint64 `json:"picks"`
	Picked       uint64   `json:"picked"`
}

// engineProcess is a running testdata/engine.py.
type engineProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
}

func start(t *testing.T, python, at string) *engineProcess {
	t.Helper()
	cmd := exec.Command(python, "-B", filepath.Join("testdata", "engine.py"), at)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := &engineProcess{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	e.address = e.line()
	return e
}

func (e *engineProcess) line() string {
	e.t.Helper()
	line, err := e.out.ReadString('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// work makes the engine generate the given number of tokens in each of four requests.
func (e *engineProcess) work(tokens string) (d done) {
	e.t.Helper()
	if _, err := io.WriteString(e.in, tokens+"\n"); err != nil {
		e.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(e.line()), &d); err != nil {
		e.t.Fatal(err)
	}
	return d
}

// session is a store fed by a client, with the newest router counts and counters.
type session struct {
	*store.Store
	client *socket.Client

	mu       sync.Mutex
	experts  *event.Experts
	counters *event.Counters
}

func (s *session) Emit(e event.Event) {
	s.mu.Lock()
	switch data := e.Data.(type) {
	case *event.Experts:
		s.experts = data
	case *event.Counters:
		s.counters = data
	}
	s.mu.Unlock()
	s.Store.Emit(e)
}

func attach(t *testing.T, at string) *session {
	t.Helper()
	clock := engine.NewClock()
	client, err := socket.Dial(at, "", clock)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Store: store.New(store.Options{Now: clock.Now, Wall: time.Now}), client: client}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{s.Run, func(ctx context.Context) error { return client.Run(ctx, s) }} {
		running.Go(func() { _ = run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	s.await(t, "the engine", func(n *store.Snapshot) bool { return n.Engine.Name != "" })
	return s
}

// await waits until the snapshot satisfies a condition and returns it.
func (s *session) await(t *testing.T, what string, condition func(*store.Snapshot) bool) *store.Snapshot {
	t.Helper()
	for end := time.Now().Add(eventtest.Patience); ; time.Sleep(5 * time.Millisecond) {
		snap := s.Snapshot()
		if condition(snap) {
			return snap
		}
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s; engine %+v, counts %+v, dropped %v", what, snap.Engine, snap.Counts, snap.Drops)
		}
	}
}

func TestProgramAgainstTheClient(t *testing.T) {
	python := interpreter(t)
	e := start(t, python, "unix:"+filepath.Join(t.TempDir(), "e.sock"))
	s := attach(t, e.address)
	d := e.work("500")
	snap := s.await(t, "all tokens", func(n *store.Snapshot) bool {
		return n.Counts.GeneratedTokens == d.Tokens+1 && int(n.Counts.Finished) == d.Requests && n.KV.Used == 64 && len(n.Load) > 0
	})
	if snap.Engine.Name != "python-test" || snap.Engine.Version != "1.5" || snap.Engine.PID != e.cmd.Process.Pid || snap.Model.Experts != 4 {
		t.Errorf("engine %+v, model %+v", snap.Engine, snap.Model)
	}
	if snap.Counts.PromptTokens != d.PromptTokens || snap.Counts.CachedTokens != 16 || snap.Counts.PadTokens != 8 || snap.Counts.Running+snap.Counts.Queued != 1 {
		t.Errorf("counts %+v, want %+v", snap.Counts, d)
	}
	if r := snap.Engine.Remote; r.Missed != 0 || r.Malformed != 0 || snap.Drops.Total() != 0 {
		t.Errorf("connection %+v, dropped %v", r, snap.Drops)
	}
	for _, r := range snap.Requests {
		if r.State == event.StateFinished && (r.Generated != 500 || r.Reason != "length" || !strings.HasPrefix(r.Group, "group-") || !r.TTFT.OK()) {
			t.Errorf("request %+v", r)
		}
	}
	s.checkExperts(t, d)
	s.await(t, "the engine's own totals", func(*store.Snapshot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.counters != nil && s.counters.Get("generated_tokens").V == float64(d.Tokens+1)
	})
}

func (s *session) checkExperts(t *testing.T, d done) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.experts == nil || s.experts.DecodeTokens != d.Picked || len(s.experts.Decode) != len(d.Picks) {
		t.Fatalf("experts %+v, want %+v", s.experts, d)
	}
	for i, n := range d.Picks {
		if s.experts.Decode[i] != n {
			t.Errorf("expert %d of layer %d: %d picks, want %d", i%4, i/4, s.experts.Decode[i], n)
		}
	}
}

func TestLateReaderAndControl(t *testing.T) {
	e := start(t, interpreter(t), "tcp:127.0.0.1:0")
	d := e.work("50")
	s := attach(t, e.address)
	snap := s.await(t, "the live request", func(n *store.Snapshot) bool { return len(n.Requests) == 1 && n.Requests[0].Generated == 1 })
	if snap.Requests[0].Group != "endless" || snap.Requests[0].State != event.StateDispatched {
		t.Errorf("request %+v", snap.Requests[0])
	}
	s.checkExperts(t, d)
	if s.client.Offers().Has(event.CapPrompt) {
		t.Error("an engine on TCP without a token accepts prompts")
	}

	e = start(t, interpreter(t), "unix:"+filepath.Join(t.TempDir(), "e.sock"))
	s = attach(t, e.address)
	s.await(t, "control", func(*store.Snapshot) bool { return s.client.Offers().Has(event.CapPrompt | event.CapCancel) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := s.client.Generate(ctx, wire.Generation{Prompt: "hello", MaxTokens: 7, Label: "chat"})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, "the request", func(n *store.Snapshot) bool {
		for _, r := range n.Requests {
			if r.ID == id {
				return r.State == event.StateFinished && r.Generated == 7 && r.Label == "chat"
			}
		}
		return false
	})
	if err := s.client.Cancel(ctx, id); err == nil || !strings.Contains(err.Error(), "no request") {
		t.Errorf("cancel: %v", err)
	}
}

func TestKilledEngineIsFollowed(t *testing.T) {
	python, at := interpreter(t), "unix:"+filepath.Join(t.TempDir(), "e.sock")
	e := start(t, python, at)
	s := attach(t, at)
	first := e.work("100")
	s.await(t, "tokens", func(n *store.Snapshot) bool { return n.Counts.GeneratedTokens == first.Tokens+1 })
	_ = e.cmd.Process.Kill()
	s.await(t, "the end of the connection", func(n *store.Snapshot) bool { return n.Engine.Remote.Link == event.LinkDisconnected })
	e = start(t, python, at) // the socket of the killed engine still exists
	s.await(t, "the second run", func(n *store.Snapshot) bool {
		return n.Engine.Remote.Restarts == 1 && n.Engine.Remote.Link == event.LinkConnected && n.Engine.PID == e.cmd.Process.Pid
	})
	second := e.work("100")
	snap := s.await(t, "tokens of both runs", func(n *store.Snapshot) bool { return n.Counts.GeneratedTokens == first.Tokens+second.Tokens+2 })
	if r := snap.Engine.Remote; r.Missed != 0 || r.Malformed != 0 {
		t.Errorf("connection %+v", r)
	}
}
