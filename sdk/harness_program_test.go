// Package sdk holds the tests of the emitters for engines in C, C++, Rust and Go: it runs example engines of these
// languages and checks their output against docs/event-protocol.md.
//
// An example engine opens its socket, prints the address, waits for a line "go" on standard input, works, prints
// "done", waits for "end", and ends. If it cannot open its socket, it prints the reason as one line on standard error
// and exits with 1. Environment variables configure it; c/testdata/engine.c shows the events:
//
//	ADDRESS            unix:PATH or tcp:HOST:PORT; default: in the default folder
//	REQUESTS, TOKENS   number of requests and tokens of each, default 3 and 5
//	THREADS            number of threads that share the requests, default 1
//	STEPS=0            tokens with position and id only, no forward passes
//	PAUSE_US           rest after each token
//	TEXT=1             also prompts and texts of tokens
//	CSV                file to write the stages to before "done"
//	HELD=1             request 9000 is queued, dispatched and has ten tokens before the address is printed; it never ends
//	LAYERS, EXPERTS    of the model, default 2 and 4
//	RING, BACKLOG      capacity of the emitter in events and bytes
package sdk

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is the time limit of any step, far above the time that it needs.
const patience = time.Minute

// Program is a running example engine.
type Program struct {
	Address string
	t       testing.TB
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	errors  *bytes.Buffer
}

// Start runs binary with environment variables ("NAME=value") and waits until its socket is open.
func Start(t testing.TB, binary string, variables ...string) *Program {
	t.Helper()
	p, ok := start(t, binary, variables)
	if !ok {
		t.Fatalf("the engine did not start: %s", p.errors)
	}
	return p
}

// Refused runs binary, which must exit at once with an error, and returns its message.
func Refused(t testing.TB, binary string, variables ...string) string {
	t.Helper()
	p, ok := start(t, binary, variables)
	if ok {
		t.Fatalf("the engine has opened %s", p.Address)
	}
	if err := p.command.Wait(); err == nil {
		t.Fatal("the engine could not open its socket, but its exit status is 0")
	}
	return p.errors.String()
}

func start(t testing.TB, binary string, variables []string) (p *Program, ok bool) {
	t.Helper()
	p = &Program{t: t, command: exec.Command(binary), lines: make(chan string, 64), errors: new(bytes.Buffer)}
	p.command.Env = append(os.Environ(), variables...)
	p.command.Stderr = p.errors
	out, err := p.command.StdoutPipe()
	if err == nil {
		p.in, err = p.command.StdinPipe()
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait() // no effect if it has been waited for
		if t.Failed() && p.errors.Len() > 0 {
			t.Logf("output of the engine: %s", p.errors)
		}
	})
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.Address, ok = <-p.lines
	return p, ok
}

// PID returns the process id of the engine.
func (p *Program) PID() int { return p.command.Process.Pid }

// Go makes the engine work.
func (p *Program) Go() { p.send("go") }

func (p *Program) send(word string) {
	if _, err := io.WriteString(p.in, word+"\n"); err != nil {
		p.t.Errorf("send %q to the engine: %v", word, err)
	}
}

// Done waits until the engine has finished its work, and returns its output.
func (p *Program) Done() (printed []string) {
	p.t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case line, ok := <-p.lines:
			switch {
			case !ok:
				p.t.Fatalf("the engine ended early: %s", p.errors)
			case line == "done":
				return printed
			}
			printed = append(printed, line)
		case <-timeout:
			p.t.Fatal("the engine does not finish")
		}
	}
}

// End ends the engine. The test fails if its exit status is not 0, for example because of a sanitizer.
func (p *Program) End() {
	p.t.Helper()
	p.send("end")
	for range p.lines { // until it has closed its output
	}
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("the engine ended with %v: %s", err, p.errors)
	}
}

// Kill kills the engine.
func (p *Program) Kill() {
	_ = p.command.Process.Kill()
	for range p.lines {
	}
	_ = p.command.Wait() // it reports that it was killed
}

// Socket returns a path that is short enough for a socket.
func Socket(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "llmtop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "engine.sock")
}

// path returns the path in an address of a Unix socket.
func path(address string) string { return strings.TrimPrefix(address, "unix:") }
