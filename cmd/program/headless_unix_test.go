//go:build unix

package program_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// localEngines are the flags for each engine that can run here.
func localEngines() map[string][]string {
	engines := map[string][]string{"native": {builtIn}, "isolated": {builtIn, "--isolated"}}
	if os.Getenv("LLMTOP_LLAMA_DIR") != "" {
		engines["llamacpp"] = []string{builtIn, "--engine", "llamacpp"}
	}
	return engines
}

// TestOneColdRequest checks that only the first request of a run includes the model load, so that the others can be
// compared.
func TestOneColdRequest(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for name, args := range localEngines() {
		for _, command := range [][]string{
			{"run", "--headless"},
			{"bench", "--requests", "3", "--warmup", "0", "--repeats", "1", "--concurrency", "3", "--limits=false"},
		} {
			command = append(append(command, args...), "-p", "a", "-p", "b", "-p", "c", "-n", "4", "--json", "-")
			out, err := exec.Command(path, command...).Output()
			if err != nil {
				t.Fatalf("%s, %v: %v", name, command, err)
			}
			r := decodeReport(t, out)
			for i, q := range r.Requests {
				loaded := q.Parts[0].Name == "model_load"
				if first := i == 0; q.Cold != first || loaded != first {
					t.Errorf("%s, %s: request %d of %d is cold %v, its parts are %v", name, command[0], i, len(r.Requests), q.Cold, q.Parts)
				}
			}
			if warm, cold := r.Latency(store.TTFT), r.Latency(store.ColdTTFT); warm == nil || warm.Count != 2 || cold == nil || cold.Count != 1 {
				t.Errorf("%s, %s: TTFT %+v, cold %+v", name, command[0], warm, cold)
			}
		}
	}
}

func decodeReport(t *testing.T, src []byte) (r report.Report) {
	t.Helper()
	if err := json.Unmarshal(src, &r); err != nil {
		t.Fatalf("%v: %s", err, src)
	}
	return r
}

// TestInterruptedRun checks that a signal cancels all requests, in the report, in the recording and for readers of the
// event socket, and that the report has a last sample of the machine.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for name, args := range localEngines() {
		for _, command := range [][]string{
			{"run", "--headless", "--pace", "20"},
			{"bench", "-n", "4000", "--ctx", "4096", "--requests", "3", "--concurrency", "3", "--warmup", "0"},
		} {
			folder := t.TempDir()
			file, at := filepath.Join(folder, "r.llmtop"), "unix:"+filepath.Join(folder, "s")
			run := exec.Command(path, append(append(command, args...), "-p", "a", "-p", "b", "-p", "c", "--parallel", "2",
				"--json", "-", "--record", file, "--listen", at)...)
			var out bytes.Buffer
			run.Stdout = &out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			seen := interrupt(t, run.Process, at)
			if err := run.Wait(); run.ProcessState.ExitCode() != exit.CodeInterrupted {
				t.Errorf("%s, %s: ended with %v", name, command[0], err)
			}
			r := decodeReport(t, out.Bytes())
			for _, of := range []string{"cpu_cores", "rss_bytes"} {
				if !r.Host.Engine.Of(of).OK() {
					t.Errorf("%s, %s: %s is absent", name, command[0], of)
				}
			}
			recorded, err := exec.Command(path, "report", file, "--json", "-").Output()
			if err != nil {
				t.Fatal(err)
			}
			for from, requests := range map[string][]report.Request{"report": r.Requests, "recording": decodeReport(t, recorded).Requests} {
				if len(requests) != 3 {
					t.Errorf("%s, %s: %d requests in the %s", name, command[0], len(requests), from)
				}
				for _, q := range requests {
					if q.State != event.StateCancelled.String() {
						t.Errorf("%s, %s: request %d is %s in the %s", name, command[0], q.ID, q.State, from)
					}
				}
			}
			for id, state := range seen() {
				if state != event.StateCancelled {
					t.Errorf("%s, %s: request %d is %v for readers of the socket", name, command[0], id, state)
				}
			}
		}
	}
}

// generates waits until a request at the event socket of a process has generated some tokens, and returns the events.
func generates(t *testing.T, p *os.Process, at string) *eventtest.Log {
	t.Helper()
	client, err := socket.Dial(at, "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	log := &eventtest.Log{}
	go func() { _ = client.Run(t.Context(), log) }()
	waitForEvents(t, p, "tokens", func() bool { return len(log.OfKind(event.KindToken)) > 5 })
	return log
}

func waitForEvents(t *testing.T, p *os.Process, what string, have func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !have(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = p.Kill()
			t.Fatalf("no %s", what)
		}
	}
}

// interrupt sends signals to a process when a request at its event socket has generated some tokens: two at once, like
// timeout(1), which are one request to end. seen waits for the end of the engine and returns the last state of each
// request.
func interrupt(t *testing.T, p *os.Process, at string) (seen func() map[event.RequestID]event.State) {
	t.Helper()
	log := generates(t, p, at)
	_, _ = p.Signal(os.Interrupt), p.Signal(syscall.SIGTERM)
	return func() map[event.RequestID]event.State {
		waitForEvents(t, p, "end", func() bool {
			engines := log.OfKind(event.KindEngine)
			return engines[len(engines)-1].Data.(*event.EngineInfo).State == event.EngineStopped
		})
		last := map[event.RequestID]event.State{}
		for _, e := range log.OfKind(event.KindRequest) {
			last[e.Req] = e.State
		}
		return last
	}
}

// TestReportAfterScreen checks that report files are written when a screen closes, with a summary on the terminal.
func TestReportAfterScreen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	recorded := filepath.Join(folder, "session.llmtop")
	expectReport(t, folder, "run", []string{"run", "-n", "4", "-p", "Call me Ishmael.", "--record", recorded})
	expectReport(t, folder, "replay", []string{"replay", recorded})
	expectReport(t, folder, "proxy", []string{"proxy", "--to", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"})
}

func expectReport(t *testing.T, folder, name string, args []string) {
	t.Helper()
	path := binary(t)
	file := filepath.Join(folder, name+".json")
	shell := []string{"-c", `"$@"; echo "exit code $?"; read -r end`, "sh", path} // keeps the terminal open, to read all of it
	p := startCommand(t, 160, 45, exec.Command("sh", append(append(shell, args...), "--json", file)...))
	p.waitFor(t, "q quit")
	if name != "proxy" {
		p.waitFor(t, "#1")
	}
	p.keys(t, "q")
	p.waitFor(t, "TTPS", "wrote "+folder, "exit code 0")
	p.keys(t, "\r")
	p.exit(t)
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := decodeReport(t, src); name != "proxy" && len(r.Requests) != 1 {
		t.Errorf("%s: the report has %d requests", name, len(r.Requests))
	}
}
