//go:build unix

package program_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// streams are the standard input, standard output and $TERM of a program.
var streams = []struct {
	in, out, term string
	screen        bool // a terminal that can show a screen
}{
	{"terminal", "terminal", "TERM=xterm-256color", true},
	{"terminal", "terminal", "TERM=", true},
	{"terminal", "terminal", "", true}, // not set
	{"terminal", "terminal", "TERM=dumb", false},
	{"terminal", "pipe", "TERM=xterm-256color", false},
	{"null", "terminal", "TERM=xterm-256color", false},
	{"null", "pipe", "", false},
	{"closed", "terminal", "TERM=xterm-256color", false},
	{"closed", "pipe", "TERM=dumb", false},
	{"terminal", "closed", "TERM=xterm-256color", false},
	{"closed", "closed", "", false},
}

// manner is how a command ends.
type manner int

const (
	ends    manner = iota // by itself, with any streams
	screen                // on a signal if it shows a screen, otherwise by itself
	brief                 // by itself, also with a screen
	records               // on a signal, with or without a screen
	lasts                 // on a signal; it has no screen
)

// TestStreams runs every command with each kind of standard input, output and terminal: it ends in order, with the
// right exit code, and errors are one line.
func TestStreams(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir := t.TempDir()
	var files atomic.Int64
	report, recording := filepath.Join(dir, "report.json"), filepath.Join(dir, "session.llmtop")
	if out, err := exec.Command(path, "run", "--headless", "-n", "2", "-p", "hi", "--json", report, "--record", recording).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	small := []string{"--requests", "1", "--repeats", "1", "--tokens", "2", "--prompt-tokens", "4", "--warmup", "0", "--limits=false"}
	const fresh = "FRESH"     // a file that does not exist
	step := eventtest.Step(4) // under the race detector, each command meets every fourth of the streams
	for i, c := range []struct {
		args    []string
		manner  manner
		code    int    // without a screen
		message string // on standard error without a screen, for errors
		closed  int    // exit code after a signal closed the screen
	}{
		{[]string{"-n", "2"}, screen, 0, "", 0},
		{[]string{"-n", "2", "--record", fresh}, screen, 0, "", 0},
		{[]string{"-n", "2", "--metrics-listen", "127.0.0.1:0"}, screen, 0, "", 0},
		{[]string{"-n", "2", "--plain", "--record", fresh}, lasts, 0, "", 0},
		{[]string{"run", "-n", "2"}, screen, 0, "", 0},
		{[]string{"run", "-n", "2", "-p", "hi", "--record", fresh, "--metrics-listen", "127.0.0.1:0"}, screen, 0, "", 0},
		{[]string{"run", "-n", "2", "-p", "hi", "--headless"}, ends, 0, "", 0},
		{[]string{"serve", "--listen", "unix:" + fresh, "--record", fresh, "--metrics-listen", "127.0.0.1:0"}, lasts, 0, "", 0},
		{[]string{"attach", server.URL}, screen, 2, "attach needs a terminal", 0},
		{[]string{"attach"}, screen, 2, "attach needs a terminal", 0},
		{[]string{"attach", "--record", fresh, server.URL}, records, 1, "", 0}, // no engine was reached
		{[]string{"attach", "--metrics-listen", "127.0.0.1:0", "--record", fresh, server.URL}, records, 1, "", 0},
		{[]string{"discover"}, ends, 0, "", 0},
		{[]string{"proxy", "--to", server.URL, "--listen", "127.0.0.1:0", "--record", fresh, "--metrics-listen", "127.0.0.1:0"}, records, 0, "", 0},
		{[]string{"proxy"}, ends, 2, "--to is missing", 0},
		{[]string{"replay", recording}, screen, 0, "", 0},
		{[]string{"cast"}, ends, 2, "cast needs the file to write", 0},
		{[]string{"cast", "--cast", fresh, "-p", "hi", "-n", "2", "--for", "100ms"}, ends, 0, "", 0},
		{[]string{"report", report}, ends, 0, "", 0},
		{[]string{"engine"}, ends, 0, "", 0},
		{[]string{"engine", "list"}, ends, 0, "", 0},
		{append([]string{"bench"}, small...), ends, 0, "", 0},
		{append([]string{"bench", "--ui"}, small...), brief, 2, "--ui needs a terminal", 0},
		{[]string{"compare", report, report}, ends, 2, "", 0}, // one run each is not enough data
		{[]string{"version"}, ends, 0, "", 0},
		{[]string{"completion", "bash"}, ends, 0, "", 0},
		{[]string{"--help"}, ends, 0, "", 0},
		{[]string{"nonsense"}, ends, 2, "unknown command", 0},
		{[]string{"version", "2"}, ends, 2, "version takes no arguments", 0},
		{[]string{"bench", "a", "b"}, ends, 2, "bench takes one model, server or engine", 0},
		{[]string{"run", "a", "b", "c"}, ends, 2, "unexpected argument", 0},
		{[]string{"engine-child", "x"}, ends, 2, "engine-child takes no arguments", 0},
	} {
		for k := i % step; k < len(streams); k += step {
			s := streams[k]
			name := strings.Join(slices.Concat(c.args[:min(len(c.args), 3)], []string{s.in, s.out, s.term}), " ")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				id := files.Add(1)
				args, record := slices.Clone(c.args), ""
				for i, arg := range args {
					if args[i] = strings.ReplaceAll(arg, fresh, filepath.Join(dir, fmt.Sprint(id, "-", i))); i > 0 && args[i-1] == "--record" {
						record = args[i]
					}
				}
				p, stderr := startWith(t, path, s.in, s.out, s.term, args)
				code, message := c.code, c.message
				switch shown := s.screen && c.manner != ends && c.manner != lasts; {
				case shown && c.manner == brief:
					code, message = 0, ""
				case shown:
					code, message = c.closed, ""
					p.until(t, "a screen", func() bool { return p.mode()&vt10x.ModeAltScreen != 0 })
					_ = p.cmd.Process.Signal(syscall.SIGTERM)
				case c.manner == records || c.manner == lasts:
					p.until(t, "a recording", func() bool {
						_, err := os.Stat(record)
						return err == nil
					})
					_ = p.cmd.Process.Signal(syscall.SIGTERM)
				}
				got := p.exit(t)
				raw, err := os.ReadFile(stderr)
				if err != nil {
					t.Fatal(err)
				}
				if got != code {
					t.Errorf("exit code %d, want %d; it message %s", got, code, raw)
				}
				switch notes := string(raw); {
				case strings.Contains(notes, "panic") || strings.Contains(notes, "goroutine"):
					t.Errorf("it broke:\n%s", notes)
				case message != "" && (!strings.HasPrefix(notes, "llmtop: ") || !strings.Contains(notes, message) || strings.Count(notes, "\n") != 1):
					t.Errorf("it prints %q, want one line with %q", notes, message)
				}
				<-p.done // all output has been read
				if left := p.mode() & (vt10x.ModeAltScreen | vt10x.ModeHide); left != 0 {
					t.Errorf("the terminal is left in mode %b", left)
				}
			})
		}
	}
}

// startWith runs llmtop in its own session with a terminal, and returns the file of its standard error.
func startWith(t *testing.T, path, in, out, variable string, args []string) (p *program, stderr string) {
	t.Helper()
	terminal, end := openTerminal(t, 120, 36)
	defer end.Close()
	// A shell closes the streams that exec.Cmd cannot leave closed.
	closing := map[bool]string{true: " <&-"}[in == "closed"] + map[bool]string{true: " >&-"}[out == "closed"]
	unset := ""
	if variable == "" {
		unset = "unset TERM; "
	}
	c := exec.Command("/bin/sh", append([]string{"-c", unset + variable + ` exec "$0" "$@"` + closing, path}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	c.ExtraFiles = []*os.File{end}
	if in == "terminal" {
		c.Stdin = end
	}
	if out == "terminal" {
		c.Stdout = end
	} else {
		c.Stdout = io.Writer(&bytes.Buffer{}) // through a pipe
	}
	stderr = filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Stderr = file
	return startOn(t, terminal, 120, 36, c), stderr
}

// until waits for a condition.
func (p *program) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s; screen:\n%s", what, p.text())
		}
	}
}
