package sdk

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// Readme returns the engine of a language's README.md with the given number of lines that call the SDK, which match calls.
func Readme(t testing.TB, lines int, language, calls string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(language, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(fmt.Sprintf("(?ms)^### %d lines$.*?^```%s\n(.*?)^```$", lines, language)).FindStringSubmatch(string(readme))
	if m == nil {
		t.Fatalf("the README has no engine with %d lines", lines)
	}
	if used := regexp.MustCompile("(?m)^.*"+calls+".*$").FindAllString(m[1], -1); len(used) > lines {
		t.Errorf("%d lines call the SDK, want %d: %q", len(used), lines, used)
	}
	return m[1]
}

// Engines are the numbers of lines of the engines of README.md in C, Go and Rust by type, by their number of lines. Each
// request has the stages tokenize, embed, prompt, first_token, and three of each of two layers; the engine has its load.
var Engines = map[int]map[string]int{
	5:  {"req": 6, "tok": 96, "step": 96, "stage": 6},
	20: {"req": 9, "tok": 96, "step": 96, "stage": 3*10 + 1, "kv": 96},
	60: {"req": 6, "tok": 64, "step": 64, "stage": 2*10 + 1, "kv": 64, "ops": 2, "log": 1},
}

// WatchReadme runs an engine of README.md, and checks the numbers of lines by type. Its model waits in its first call for
// the file MODEL_WAIT.
func WatchReadme(t testing.TB, binary string, check func([]byte) error, want map[string]int) {
	t.Helper()
	folder := filepath.Dir(Socket(t))
	ready := filepath.Join(folder, "ready")
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder, "MODEL_WAIT="+ready)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var sockets []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		sockets, _ = filepath.Glob(fmt.Sprintf("%s/llmtop/my?engine-%d.sock", folder, cmd.Process.Pid))
		if len(sockets) == 0 {
			continue
		}
		if conn, err := net.Dial("unix", sockets[0]); err == nil {
			_ = conn.Close()
			break
		}
	}
	if len(sockets) == 0 {
		t.Fatal("the engine has no socket")
	}
	r := Connect(t, "unix:"+sockets[0], check)
	r.Read("synced")
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Rest()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for kind, n := range want {
		got := len(r.Of(kind, 0)) // those in the state as well
		if kind == "ops" && got > 0 && got < n {
			continue // newer times may replace older ones
		}
		if got != n {
			t.Errorf("%d lines of type %s, want %d", got, kind, n)
		}
	}
}
