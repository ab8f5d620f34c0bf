//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// failed waits for the end of a run after an engine failure, and checks the reported events.
func (r *running) failed(t *testing.T, h *engine.Handle, reason string) *Ended {
	t.Helper()
	var ended *Ended
	if err := <-r.ended; !errors.As(err, &ended) || !strings.Contains(ended.Reason, reason) {
		t.Fatalf("the run ended with %v, want %q", err, reason)
	}
	if e := r.engine(); e.State != event.EngineFailed || e.Reason != ended.Reason || e.Remote.Link != event.LinkNone {
		t.Errorf("the engine is %+v", e)
	}
	if !r.contains(ended.Reason) {
		t.Error("the log does not contain the reason")
	}
	if h == nil {
		return ended
	}
	tokens := 0
	for _, e := range r.OfKind(event.KindToken) {
		if e.Req == h.ID {
			tokens++
		}
	}
	result := h.Result()
	if result.State != event.StateFailed || result.Err == nil || result.Prompt == 0 || result.Generated != tokens || tokens == 0 {
		t.Errorf("of %d tokens the result is %+v", tokens, result)
	}
	all := r.OfKind(event.KindRequest)
	if last := all[len(all)-1]; last.State != event.StateFailed || last.Req != h.ID || last.Data.(*event.Outcome).Generated != tokens {
		t.Errorf("the request's last event is %+v", last)
	}
	if _, err := r.Submit(engine.Request{Text: "a"}); !errors.Is(err, engine.ErrStopped) || !errors.As(err, &ended) {
		t.Errorf("a request after the end: %v", err)
	}
	return ended
}

// TestKilled kills the process between two tokens; the tokens so far are kept.
func TestKilled(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			r := start(t, job{Pace: 50})
			h := r.ask(t, "Call me Ishmael.", 100)
			eventtest.Wait(t, "tokens", func() bool { return len(r.OfKind(event.KindToken)) > 4 })
			if err := syscall.Kill(r.PID(), s); err != nil {
				t.Fatal(err)
			}
			r.failed(t, h, name)
		})
	}
}

// TestCrashes crashes the engine during a pass, in various ways.
func TestCrashes(t *testing.T) {
	for fault, reason := range map[string]string{
		"abort": "SIGABRT", "crash": "SIGSEGV", "die": "because memory ran out", "exit": "exit status 7",
	} {
		t.Run(fault, func(t *testing.T) {
			r := start(t, job{Fault: fault, After: 9, Pace: 50})
			ended := r.failed(t, r.ask(t, "Call me Ishmael.", 100), reason)
			if want := "about to " + fault; !r.contains(want) || len(ended.Log) == 0 || ended.Log[len(ended.Log)-1] != want ||
				!strings.HasSuffix(ended.Error(), want) || strings.Contains(ended.Error(), "goroutine") {
				t.Errorf("the log ended %q:\n%v", ended.Log, ended)
			}
		})
	}
}

// TestLastWords: the message of a library that aborts is reported as the reason, not the signal.
func TestLastWords(t *testing.T) {
	r := start(t, job{Fault: "give up", After: 9, Pace: 50})
	ended := r.failed(t, r.ask(t, "Call me Ishmael.", 100), "the engine gave up: somewhere.c:12: it is all wrong")
	if n := len(ended.Log); n < 2 || ended.Log[n-1] != lastWordsPrefix+"somewhere.c:12: it is all wrong" || ended.Log[n-2] != "a line without an end" {
		t.Errorf("the log ended %q", ended.Log)
	}
}

// TestEngineReportsFailure: an engine that reports a fatal error has not crashed.
func TestEngineReportsFailure(t *testing.T) {
	r := start(t, job{Fault: "break", After: 9, Pace: 50})
	if ended := r.failed(t, r.ask(t, "Call me Ishmael.", 100), "the device is gone"); ended.Mistake || len(ended.Log) > 0 {
		t.Errorf("%+v", ended)
	}
	r = start(t, job{Fault: "mistake"})
	if ended := r.failed(t, nil, errMistake.Error()); !ended.Mistake || ended.Error() != errMistake.Error() {
		t.Errorf("%+v", ended)
	}
}

// TestStopped stops the process with SIGSTOP, expects it to be reported as silent, and continues it.
func TestStopped(t *testing.T) {
	r := start(t, job{Pace: 20})
	h := r.ask(t, "Call me Ishmael.", 20)
	eventtest.Wait(t, "token", func() bool { return len(r.OfKind(event.KindToken)) > 0 })
	if err := syscall.Kill(r.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "stale", func() bool { return r.engine().Remote.Link == event.LinkStale })
	if _, err := r.Submit(engine.Request{Text: "a"}); !errors.Is(err, socket.ErrSilent) {
		t.Errorf("a request while it is silent: %v", err)
	}
	if err := syscall.Kill(r.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "heard again", func() bool { return r.engine().Remote == event.Remote{} })
	if result := h.Result(); result.State != event.StateFinished || result.Generated != 20 {
		t.Errorf("the request that was stopped: %+v", result)
	}
	if err := syscall.Kill(r.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventtest.Wait(t, "stale", func() bool { return r.engine().Remote.Link == event.LinkStale })
	r.end()
	if err := <-r.ended; err != nil || r.engine().State != event.EngineStopped || r.engine().Remote.Link != event.LinkNone {
		t.Errorf("%v, %+v", err, r.engine())
	}
}

// TestNoSuchProgram starts a program that does not exist, and one that is not an engine.
func TestNoSuchProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if _, err := Start(Options{Program: []string{dir + "/none"}, Clock: engine.NewClock()}); err == nil {
		t.Error("started a program that does not exist")
	}
	p, err := Start(Options{Program: []string{"/bin/sh", "-c", "echo what is this >&2; exit 9"}, Clock: engine.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	var ended *Ended
	if err := p.Run(context.Background(), event.Tee{}); !errors.As(err, &ended) || !strings.Contains(err.Error(), "exit status 9") ||
		!strings.Contains(err.Error(), "what is this") {
		t.Errorf("%v", err)
	}
	if p, err = Start(Options{Program: []string{"/bin/sh", "-c", "cat >/dev/null"}, Clock: engine.NewClock()}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil { // without Run
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// parentMain is a parent that starts a child, prints its pid, and waits to be killed.
func parentMain() {
	_ = os.Setenv(role, "child")
	p, err := Start(Options{Program: []string{os.Args[0]}, Spec: job{Pace: 20}, Clock: engine.NewClock()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var l log
	go func() { _ = p.Run(context.Background(), &l) }()
	if _, err := p.Submit(engine.Request{Text: "a", IgnoreEOS: true}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for len(l.OfKind(event.KindToken)) < 3 {
		time.Sleep(pollInterval)
	}
	fmt.Println(p.PID())
	select {}
}

// TestParentKilled kills a parent during a run: its child ends, too, and leaves no files.
func TestParentKilled(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), role+"=parent", "TMPDIR="+dir)
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, notANumber := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || notANumber != nil || !alive(pid) {
		t.Fatalf("the parent printed %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	eventtest.Wait(t, "the child is gone", func() bool { return !alive(pid) })
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// alive reports whether a process runs. A zombie that its new parent has not reaped does not count.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
	}
	return syscall.Kill(pid, 0) == nil
}

// TestRefusalsAtOnce starts many engines that refuse their model, so that processes end while their parent is still
// connecting: each gives its reason.
func TestRefusalsAtOnce(t *testing.T) {
	t.Setenv(role, "child")
	var engines sync.WaitGroup
	for range 24 {
		engines.Go(func() {
			p, err := Start(Options{Program: []string{os.Args[0]}, Spec: job{Fault: "mistake"}, Clock: engine.NewClock()})
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Run(t.Context(), &log{}); err == nil || err.Error() != errMistake.Error() {
				t.Errorf("the run ended with %v, want %v", err, errMistake)
			}
		})
	}
	engines.Wait()
}
