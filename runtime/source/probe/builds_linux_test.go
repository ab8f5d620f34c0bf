//go:build amd64 || arm64

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// launch runs a program until the test ends, and waits for a word in its output.
func launch(t *testing.T, c *exec.Cmd, word string) int {
	t.Helper()
	var out bytes.Buffer
	said, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", c.Path, out.String())
		}
	})
	late := time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	for part := make([]byte, 4096); !strings.Contains(out.String(), word); {
		n, err := said.Read(part)
		out.Write(part[:n])
		if err != nil {
			t.Fatalf("%s ended before it said %q: %v\n%s", c.Path, word, err, out.String())
		}
	}
	go func() { // nobody may wait for a full pipe
		part := make([]byte, 4096)
		for _, err := said.Read(part); err == nil; _, err = said.Read(part) {
		}
	}()
	return c.Process.Pid
}

// need returns a program on the PATH, and skips the test without it.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s: %v", name, err)
	}
	return path
}

// stripped returns a copy of a program with its libraries, whose symbols that only linkers need are removed.
func stripped(t *testing.T, from string) string {
	t.Helper()
	dir, strip := t.TempDir(), need(t, "strip")
	names, err := filepath.Glob(filepath.Join(filepath.Dir(from), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(to, data, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(strip, "--strip-all", to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return filepath.Join(dir, filepath.Base(from))
}

// TestStrippedLibraries watches llama-bench on stripped libraries, some of whose paths have other files by now.
func TestStrippedLibraries(t *testing.T) {
	needProbes(t)
	for name, tt := range map[string]struct {
		args              []string
		prompt, generated int // of each request
	}{
		"prompts": {[]string{"-p", "32", "-n", "0"}, 32, 0},
		"tokens":  {[]string{"-p", "0", "-n", "16"}, 1, 15}, // the first is the prompt of the others
	} {
		t.Run(name, func(t *testing.T) {
			program := stripped(t, peer.Path(t, peer.LlamaBenchEnv))
			args := append([]string{"-m", peer.Model(t), "-r", "1000000", "-t", "1", "--progress"}, tt.args...)
			pid := launch(t, exec.Command(program, args...), "run 3/")
			replace(t, filepath.Dir(program), "before")
			h := observe(t, pid, engine.NewClock(), engine.Hooks{Experts: true, Every: 3})
			replace(t, filepath.Dir(program), "while attached")
			isPicks := func(e event.Event) bool {
				x, ok := e.Data.(*event.Experts)
				return ok && x.PromptTokens+x.DecodeTokens > 0
			}
			h.wait(t, "picks", isPicks)
			ends := 0
			all := h.wait(t, "ten requests", func(e event.Event) bool {
				if e.Kind == event.KindRequest && e.State == event.StateFinished {
					ends++
				}
				return ends >= 10
			})
			ends = 0
			for _, e := range all {
				o, ok := e.Data.(*event.Outcome)
				if !ok {
					continue
				}
				if ends++; ends == 1 { // it may have begun before the probes
					continue
				}
				if o.Prompt != tt.prompt || o.Cached != 0 || o.Generated != tt.generated {
					t.Errorf("%+v, want %d prompt tokens and %d generated", o, tt.prompt, tt.generated)
				}
			}
		})
	}
}

// replace puts other files at the paths of libraries, as an update does.
func replace(t *testing.T, dir, text string) {
	t.Helper()
	for _, name := range []string{"libllama.v0.5.0.so", "libggml-base.so"} {
		next := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(next+".new", []byte(text), 0o700), os.Rename(next+".new", next)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrippedProgram refuses a static program without symbols, and says why.
func TestStrippedProgram(t *testing.T) {
	data, err := os.ReadFile(peer.Path(t, peer.LlamaServerEnv))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "llama-server")
	if err := os.WriteFile(program, data, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(need(t, "strip"), "--strip-all", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := launch(t, exec.Command(program, "-m", peer.Model(t), "--host", "127.0.0.1", "--port", "0"), "load")
	_, err = Inspect(pid)
	if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "its symbols are stripped") {
		t.Errorf("error %v", err)
	}
}

// childOf returns the only child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // each thread has its own
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if child, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

// TestOllama watches the llama-server that Ollama started: the counts are those of Ollama's answer.
func TestOllama(t *testing.T) {
	needProbes(t)
	ollama := peer.Ollama(t)
	ask := func(n int) (answer struct {
		Prompt    int `json:"prompt_eval_count"`
		Generated int `json:"eval_count"`
	},
	) {
		body := fmt.Sprintf(`{"model":%q,"prompt":"Call me Ishmael.","raw":true,"stream":false,"options":{"num_predict":%d,"temperature":0}}`, peer.OllamaModel, n)
		got, err := http.Post(ollama.URL+"/api/generate", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	ask(1)
	h := observe(t, childOf(t, ollama.PID), engine.NewClock(), engine.Hooks{})
	want := ask(12)
	all := h.wait(t, "the end", func(e event.Event) bool { return e.Kind == event.KindRequest && e.State == event.StateFinished })
	for _, e := range all {
		if o, ok := e.Data.(*event.Outcome); ok && (o.Prompt != want.Prompt || o.Generated != want.Generated) {
			t.Errorf("%+v, Ollama reports %+v", o, want)
		}
	}
}

// TestContainer watches a server with mounts, process numbers and a root of its own.
func TestContainer(t *testing.T) {
	needProbes(t)
	need(t, "unshare")
	root := t.TempDir()
	program, model := peer.Path(t, peer.LlamaServerEnv), peer.Model(t)
	script := `set -e
mount -t tmpfs none "$0"; cd "$0"; mkdir -p proc srv usr lib lib64 tmp
for d in usr lib lib64; do [ ! -d /$d ] || mount --bind /$d $d; done
mount -t proc proc proc; cp "$1" srv/llama-server; cp "$2" srv/demo.gguf
exec chroot . /srv/llama-server -m /srv/demo.gguf --host 127.0.0.1 --port "$3" -t 1 2>&1`
	port := freePort(t)
	unshare := launch(t, exec.Command("unshare", "-m", "-p", "-f", "--kill-child", "sh", "-c", script, root, program, model, port), "listening on")
	for _, e := range sameTokens(t, childOf(t, unshare), port) {
		switch d := e.Data.(type) {
		case *event.EngineInfo:
			if d.PID == 1 {
				t.Error("the number of the process is that inside")
			}
		case *event.Model:
			if !strings.HasSuffix(d.Path, "/srv/demo.gguf") || d.Layers == 0 {
				t.Errorf("model %+v", d)
			}
		}
	}
}

// TestSharedServer watches a server on shared libraries, as they are and stripped.
func TestSharedServer(t *testing.T) {
	needProbes(t)
	program := peer.Path(t, peer.LlamaSharedEnv)
	for name, program := range map[string]string{"as built": program, "stripped": stripped(t, program)} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			pid := launch(t, exec.Command(program, "-m", peer.Model(t), "--host", "127.0.0.1", "--port", port, "-t", "1"), "listening on")
			sameTokens(t, pid, port)
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
}

// sameTokens watches a server during a request and returns the events: tokens are those of the reply, with picks.
func sameTokens(t *testing.T, pid int, port string) []event.Event {
	t.Helper()
	h := observe(t, pid, engine.NewClock(), engine.Hooks{Experts: true, Every: 1})
	want := complete(t, "http://127.0.0.1:"+port, map[string]any{"prompt": "Call me Ishmael.", "n_predict": 10, "temperature": 0, "return_tokens": true})
	all := h.wait(t, "the end", func(e event.Event) bool { return e.Kind == event.KindRequest && e.State == event.StateFinished })
	var got []int32
	picked := false
	for _, e := range all {
		if e.Kind == event.KindToken {
			got, picked = append(got, e.ID), picked || e.Picks != nil
		}
	}
	if !slices.Equal(got, want.Tokens) || !picked {
		t.Errorf("tokens %v, want %v; picks: %t", got, want.Tokens, picked)
	}
	return all
}

// liar is a program with functions of llama.cpp's names. Its first argument says what it does, its second how many
// threads it has besides.
const liar = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct batch { int n; int *token; float *embd; int *pos; int *n_seq_id; int **seq_id; signed char *logits; };
int llama_decode(void *ctx, struct batch b) { return ctx != 0 && b.n == 0; }
int llama_synchronize(void *ctx) { return usleep(5000) + (ctx != 0); }
int llama_memory_seq_rm(void *m, int seq, int from, int to) { return m != 0; }
static void *idle(void *p) { pause(); return p; }
int main(int argc, char **argv) {
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384);
	for (int i = 0; i < atoi(argv[2]); i++) {
		pthread_t t;
		if (pthread_create(&t, &a, idle, 0)) { perror("thread"); return 1; }
	}
	puts("ready");
	fflush(stdout);
	int token = 5, pos = 0, seq = 0, *seqs = &seq;
	signed char yes = 1;
	for (;; usleep(20000)) {
		struct batch b = {1, &token, 0, &pos, 0, &seqs, &yes};
		if (!strcmp(argv[1], "count")) b.n = 123456789;
		if (!strcmp(argv[1], "pointers")) b.token = b.pos = (int *)8, b.seq_id = (int **)16;
		if (!strcmp(argv[1], "sequence")) seq = 70000;
		llama_decode(argv, b);
		if (!strcmp(argv[1], "device")) llama_synchronize(argv);
		pos++;
	}
}
`

// TestLiar watches a program whose functions only have llama.cpp's names, and one with 10,000 threads.
func TestLiar(t *testing.T) {
	needProbes(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "liar")
	compile := func(source string, args ...string) {
		c := exec.Command(need(t, "cc"), append([]string{"-x", "c", "-", "-O0", "-pthread", "-o"}, args...)...)
		c.Stdin = strings.NewReader(source)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	compile(liar, program)
	for lie, reason := range map[string]string{"count": "has 123456789 tokens", "pointers": "sequence -1", "sequence": "sequence 70000"} {
		t.Run(lie, func(t *testing.T) {
			h := observe(t, launch(t, exec.Command(program, lie, "0"), "ready"), engine.NewClock(), engine.Hooks{})
			all := h.wait(t, "the refusal", func(e event.Event) bool {
				info, ok := e.Data.(*event.EngineInfo)
				return ok && info.State == event.EngineFailed && strings.Contains(info.Reason, reason)
			})
			for _, e := range all {
				if e.Kind == event.KindStep || e.Kind == event.KindRequest || e.Kind == event.KindToken || e.Kind == event.KindKV {
					t.Errorf("event %v of a process that is refused", e.Kind)
				}
			}
		})
	}
	t.Run("device", func(t *testing.T) {
		driver, program := filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, "device")
		compile("int driver;", driver, "-shared")
		compile(liar, program, "-Wl,--no-as-needed", "-x", "none", driver)
		h := observe(t, launch(t, exec.Command(program, "device", "0"), "ready"), engine.NewClock(), engine.Hooks{})
		for _, e := range h.wait(t, "ten passes", func(e event.Event) bool { return e.Kind == event.KindStep && e.Step == 10 }) {
			if info, ok := e.Data.(*event.EngineInfo); ok && info.Device.Name != "" {
				t.Errorf("device %q of passes that a GPU may compute", info.Device.Name)
			}
			if e.Kind == event.KindStep && e.Dur < 5e6 {
				t.Errorf("a pass of %d ns does not include the synchronisation", e.Dur)
			}
		}
	})
	t.Run("threads", func(t *testing.T) {
		h := observe(t, launch(t, exec.Command(program, "truth", "10000"), "ready"), engine.NewClock(), engine.Hooks{})
		h.wait(t, "a pass", func(e event.Event) bool { return e.Kind == event.KindStep && e.N == 1 })
	})
	t.Run("another process with the number", func(t *testing.T) {
		target, err := Inspect(launch(t, exec.Command(program, "truth", "0"), "ready"))
		if err != nil {
			t.Fatal(err)
		}
		target.Started--
		if _, err := Open(target, engine.NewClock(), engine.Hooks{}); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("not permitted", func(t *testing.T) {
		pid := launch(t, exec.Command(program, "truth", "0"), "ready")
		if err := asNobody(func() error { _, err := Inspect(pid); return err }); !errors.Is(err, os.ErrPermission) {
			t.Errorf("error %v", err)
		}
	})
}

// asNobody calls a function in a thread without privileges.
func asNobody(call func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); no != 0 {
			done <- no
			return
		}
		done <- call()
	}()
	return <-done
}
