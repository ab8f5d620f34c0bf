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
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime"
)

// roles are what this binary does, instead of testing, in a process of its own.
var roles = map[string]func(at string){"reader": beReader, "engine": beEngine, "mumbler": beMumbler}

// What tells another process its role, and the address of the socket.
const (
	roleVariable    = "SOCKET_TEST_ROLE"
	addressVariable = "SOCKET_TEST_ADDRESS"
)

// other is another process that plays a role until the test ends.
type other struct {
	*exec.Cmd
	lines *bufio.Scanner // that it prints
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
	stdin, err := c.StdinPipe() // it ends when this ends
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

// line is the next line that it prints.
func (o *other) line(t testing.TB) string {
	t.Helper()
	if !o.lines.Scan() {
		t.Fatalf("the other process has ended: %v", o.lines.Err())
	}
	return o.lines.Text()
}

// kill ends it as a crash would.
func (o *other) kill(t testing.TB) {
	t.Helper()
	if err := o.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.Wait()
}

// untilTheTestEnds waits for the end of standard input.
func untilTheTestEnds() { _, _ = io.Copy(io.Discard, os.Stdin) }

// account is what a reader keeps of a session, apart from what the engine tells again.
type account struct {
	Came      event.Lost // by kind
	Lost      event.Lost // as the engine says
	Missing   int64
	Garbage   uint64
	Jumps     int // of the engine's clock, supposedly
	Link      event.Link
	Generated uint64 // tokens, by the store
	Finished  uint64 // requests, by the store
	Shown     event.Lost
	Heap      int64

	client *Client
	store  *store.Store
	events int
}

// beReader follows an engine into a store, and prints its account whenever the engine's log asks for it.
func beReader(at string) {
	clock := runtime.NewClock()
	c, err := Dial(at, "", clock)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := &account{client: c, store: store.New(store.Options{Now: clock.Now})}
	go func() { _ = c.Run(context.Background(), a) }()
	untilTheTestEnds()
}

// report is the log line that asks for an account.
const report = "report"

// Emit implements event.Sink. It runs on the goroutine of the client.
func (a *account) Emit(e event.Event) {
	a.store.Emit(e)
	if a.events++; a.events%4096 == 0 {
		a.store.Snapshot() // so that its queue does not overflow
	}
	switch {
	case e.Kind == event.KindLost:
		a.Lost = *e.Data.(*event.Lost)
		return
	case e.Kind == event.KindEngine:
		r := e.Data.(*event.Engine).Remote
		a.Link, a.Missing, a.Garbage = r.Link, r.Missing, r.Garbage
		return
	case e.Kind == event.KindLog && strings.Contains(e.Text, "clock has jumped"):
		a.Jumps++
		return
	case !a.client.follow.syncing || e.Kind == event.KindStep: // which is never told again
		a.Came[e.Kind]++
	}
	if e.Kind == event.KindLog && e.Text == report {
		a.print()
	}
}

func (a *account) print() {
	s := a.store.Snapshot()
	a.Generated, a.Finished, a.Shown, a.Heap = s.Counts.GeneratedTokens, s.Counts.Finished, s.Lost, heap()
	_ = json.NewEncoder(os.Stdout).Encode(a)
}

// account asks for the account of a reader.
func (o *other) account(t testing.TB, s event.Sink) (a account) {
	t.Helper()
	s.Emit(event.Event{Kind: event.KindLog, Layer: -1, Text: report})
	if err := json.Unmarshal([]byte(o.line(t)), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// beEngine listens, and says nothing but that it does.
func beEngine(at string) {
	s, err := Listen(at, Options{Engine: event.Engine{Name: "other"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("listening")
	untilTheTestEnds()
	_ = s.Close()
}

// beMumbler introduces itself, tells of a token and then of half a token.
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

// TestEngineKilledInTheMiddleOfALine: half a line is none, what came before stays, and the engine that follows is another run.
func TestEngineKilledInTheMiddleOfALine(t *testing.T) {
	at := path(t)
	engine := play(t, "mumbler", at)
	var got log
	attach(t, at, "", &got)
	await(t, "a token", func() bool { return len(got.Of(event.KindToken)) == 1 })
	engine.kill(t)
	await(t, "the disconnection", func() bool { return got.remote().Link == event.LinkDisconnected })
	s := server(t, at, Options{}) // in place of the socket that it left behind
	await(t, "the restart", func() bool { r := got.remote(); return r.Link == event.LinkConnected && r.Restarts == 1 })
	s.Emit(token(1, 5, 0))
	await(t, "another token", func() bool { return len(got.Of(event.KindToken)) == 2 })
	if tokens := got.Of(event.KindToken); tokens[0].Req != 1 || tokens[1].Req != 2 {
		t.Errorf("tokens of requests %d and %d, want two runs", tokens[0].Req, tokens[1].Req)
	}
	if r := got.remote(); r.Garbage != 0 || r.Missing != 0 {
		t.Errorf("connection %+v", r)
	}
}

// TestSocketOfAKilledEngine is reclaimed; while that engine lived it was refused, with its pid.
func TestSocketOfAKilledEngine(t *testing.T) {
	at := path(t)
	engine := play(t, "engine", at)
	if said := engine.line(t); said != "listening" {
		t.Fatal(said)
	}
	want := fmt.Sprintf("listen at %s: in use by the engine with pid %d", at, engine.Process.Pid)
	if s, err := Listen(at, Options{}); err == nil || err.Error() != want {
		t.Errorf("beside a live engine: %v, want %s", err, want)
		_ = s.Close()
	}
	engine.kill(t)
	if _, err := os.Lstat(strings.TrimPrefix(at, "unix:")); err != nil {
		t.Fatalf("the killed engine has left no socket: %v", err)
	}
	s := server(t, at, Options{})
	connection(t, s)
	await(t, "a reader", func() bool { return s.Readers() == 1 })
}
