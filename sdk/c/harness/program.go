// Package harness runs example engines of any language and holds what they write to docs/event-protocol.md.
//
// An example engine opens its socket, prints the address, waits on standard input for a line "go", works, prints "done", waits for "end",
// and ends. Where it cannot open its socket it says why in one line on standard error and exits with 1. Variables of the environment tell
// it what to do; testdata/engine.c beside this package shows what is emitted:
//
//	ADDRESS            unix:PATH or tcp:HOST:PORT; without it the well-known folder
//	REQUESTS, TOKENS   so many requests of so many tokens, 3 and 5 without them
//	THREADS            that share the requests, 1 without it
//	STEPS=0            tokens with position and id, and no forward passes
//	PAUSE_US           rest after each token
//	TEXT=1             prompts and texts of tokens, too
//	CSV                file to write the stages to before "done"
//	HELD=1             request 9000 is queued, dispatched and has ten tokens before the address is printed, and never ends
//	LAYERS, EXPERTS    of the model, 2 and 4 without them
//	RING, BACKLOG      events, and bytes, that the emitter holds
package harness

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

// patience is how long anything may take before a test fails. Nothing that works comes near it.
const patience = time.Minute

// Program is an example engine that runs.
type Program struct {
	Address string
	t       testing.TB
	command *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	errors  *bytes.Buffer
}

// Start runs binary with variables of the environment ("NAME=value") and waits until its socket is open.
func Start(t testing.TB, binary string, variables ...string) *Program {
	t.Helper()
	p, ok := start(t, binary, variables)
	if !ok {
		t.Fatalf("the engine did not start: %s", p.errors)
	}
	return p
}

// Refused runs binary, which is expected to end at once, and returns what it says.
func Refused(t testing.TB, binary string, variables ...string) string {
	t.Helper()
	p, ok := start(t, binary, variables)
	if ok {
		t.Fatalf("the engine has opened %s", p.Address)
	}
	if err := p.command.Wait(); err == nil {
		t.Fatal("the engine could not open its socket and says nothing of it in its exit status")
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
		_ = p.command.Wait() // nothing new if it has been waited for
		if t.Failed() && p.errors.Len() > 0 {
			t.Logf("the engine says: %s", p.errors)
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

// PID is the process of the engine.
func (p *Program) PID() int { return p.command.Process.Pid }

// Go lets the engine work.
func (p *Program) Go() { p.say("go") }

func (p *Program) say(word string) {
	if _, err := io.WriteString(p.in, word+"\n"); err != nil {
		p.t.Errorf("tell the engine to %s: %v", word, err)
	}
}

// Done waits until the engine has worked, and returns what it printed.
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
			p.t.Fatal("the engine does not get done")
		}
	}
}

// End ends the engine, and fails the test if it does not end well: a sanitizer that finds something says so.
func (p *Program) End() {
	p.t.Helper()
	p.say("end")
	for range p.lines { // until it has closed its output
	}
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("the engine ended with %v: %s", err, p.errors)
	}
}

// Kill ends the engine at once.
func (p *Program) Kill() {
	_ = p.command.Process.Kill()
	for range p.lines {
	}
	_ = p.command.Wait() // it says that it was killed
}

// Socket is a path for a socket, short enough for one.
func Socket(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "llmtop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "engine.sock")
}

// path is the path in an address of a Unix socket.
func path(address string) string { return strings.TrimPrefix(address, "unix:") }
