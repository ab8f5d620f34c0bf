package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
)

// roles are what this binary can do in a process of its own, instead of testing.
var roles = map[string]func(at string){"reader": beReader, "engine": beEngine, "mumbler": beMumbler}

// Environment variables with the role and the address of the socket.
const (
	roleVariable    = "SOCKET_TEST_ROLE"
	addressVariable = "SOCKET_TEST_ADDRESS"
)

// other is another process that plays a role until the test ends.
type other struct {
	*exec.Cmd
	lines *bufio.Scanner // of its output
}

func play(t testing.TB, role, at string) *other {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), roleVariable+"="+role, addressVariable+"="+at)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe() // ends when this process ends
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return &other{c, bufio.NewScanner(stdout)}
}

// line returns the next line of its output.
func (o *other) line(t testing.TB) string {
	t.Helper()
	if !o.lines.Scan() {
		t.Fatalf("the other process has ended: %v", o.lines.Err())
	}
	return o.lines.Text()
}

// kill ends it like a crash.
func (o *other) kill(t testing.TB) {
	t.Helper()
	if err := o.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.Wait()
}

// untilTheTestEnds waits for the end of standard input.
func untilTheTestEnds() { _, _ = io.Copy(io.Discard, os.Stdin) }

// account counts what a reader receives in a session, without repeated states.
type account struct {
	Came      event.Drops // by kind
	Lost      event.Drops // as reported by the engine
	Missing   int64
	Garbage   uint64
	Jumps     int // reported jumps of the engine's clock
	Link      event.Link
	Generated uint64 // tokens, from the store
	Finished  uint64 // requests, from the store
	Shown     event.Drops
	Heap      int64

	client *Client
	store  *store.Store
	events int
}

// beReader follows an engine into a store, and prints its account whenever the engine's log requests it.
func beReader(at string) {
	clock := engine.NewClock()
	c, err := Dial(at, "", clock)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := &account{client: c, store: store.New(store.Options{Now: clock.Now})}
	go func() { _ = c.Run(context.Background(), a) }()
	untilTheTestEnds()
}

// report is the log line that requests an account.
const report = "report"

// Emit implements event.Sink. It runs on the client's goroutine.
func (a *account) Emit(e event.Event) {
	a.store.Emit(e)
	if a.events++; a.events%4096 == 0 {
		a.store.Snapshot() // so that the queue does not overflow
	}
	switch {
	case e.Kind == event.KindDrops:
		a.Lost = *e.Data.(*event.Drops)
		return
	case e.Kind == event.KindEngine:
		r := e.Data.(*event.EngineInfo).Remote
		a.Link, a.Missing, a.Garbage = r.Link, r.Missed, r.Malformed
		return
	case e.Kind == event.KindLog && strings.Contains(e.Text, "clock jumped"):
		a.Jumps++
		return
	case !a.client.follow.syncing || e.Kind == event.KindStep: // states do not repeat steps
		a.Came[e.Kind]++
	}
	if e.Kind == event.KindLog && e.Text == report {
		a.print()
	}
}

func (a *account) print() {
	s := a.store.Snapshot()
	a.Generated, a.Finished, a.Shown, a.Heap = s.Counts.GeneratedTokens, s.Counts.Finished, s.Drops, heap()
	_ = json.NewEncoder(os.Stdout).Encode(a)
}

// account requests the account of a reader.
func (o *other) account(t testing.TB, s event.Sink) (a account) {
	t.Helper()
	s.Emit(event.Event{Kind: event.KindLog, Layer: -1, Text: report})
	if err := json.Unmarshal([]byte(o.line(t)), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// beEngine listens and emits only that it is listening.
func beEngine(at string) {
	s, err := Listen(at, Options{Engine: event.EngineInfo{Name: "other"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listening")
	untilTheTestEnds()
	_ = s.Close()
}

// beMumbler introduces itself, then sends a token and half of another.
func beMumbler(at string) {
	l, err := net.Listen("unix", strings.TrimPrefix(at, "unix:"))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := l.Accept()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(conn, `{"t":"hello","v":"1.0","name":"mumbler","pid":42,"run":"one","a":1000}`)
	fmt.Fprintln(conn, `{"t":"tok","a":1001,"r":1,"i":0}`)
	fmt.Fprint(conn, `{"t":"tok","a":1002,"r":1,"i":1}`)
	untilTheTestEnds()
}

// TestEngineKilledInTheMiddleOfALine: half a line is ignored, what came before stays, and the next engine is another
// run.
func TestEngineKilledInTheMiddleOfALine(t *testing.T) {
	at := path(t)
	engine := play(t, "mumbler", at)
	var got log
	attach(t, at, "", &got)
	eventtest.Wait(t, "a token", func() bool { return len(got.OfKind(event.KindToken)) == 1 })
	engine.kill(t)
	eventtest.Wait(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	s := server(t, at, Options{}) // replaces the socket left behind
	eventtest.Wait(t, "the restart", func() bool { r := got.remote(); return r.Link == event.LinkConnected && r.Restarts == 1 })
	s.Emit(token(1, 5, 0))
	eventtest.Wait(t, "another token", func() bool { return len(got.OfKind(event.KindToken)) == 2 })
	if tokens := got.OfKind(event.KindToken); tokens[0].Req != 1 || tokens[1].Req != 2 {
		t.Errorf("tokens of requests %d and %d, want two runs", tokens[0].Req, tokens[1].Req)
	}
	if r := got.remote(); r.Malformed != 0 || r.Missed != 0 {
		t.Errorf("connection %+v", r)
	}
}

// TestSocketOfAKilledEngine: the socket is replaced; while the engine was alive, the address was refused with its pid.
func TestSocketOfAKilledEngine(t *testing.T) {
	at := path(t)
	engine := play(t, "engine", at)
	if line := engine.line(t); line != "listening" {
		t.Fatal(line)
	}
	want := fmt.Sprintf("listen at %s: in use by the engine with pid %d", at, engine.Process.Pid)
	if s, err := Listen(at, Options{}); err == nil || err.Error() != want {
		t.Errorf("with a live engine: %v, want %s", err, want)
		_ = s.Close()
	}
	engine.kill(t)
	if _, err := os.Lstat(strings.TrimPrefix(at, "unix:")); err != nil {
		t.Fatalf("the killed engine left no socket: %v", err)
	}
	s := server(t, at, Options{})
	connection(t, s)
	eventtest.Wait(t, "a reader", func() bool { return s.Readers() == 1 })
}
