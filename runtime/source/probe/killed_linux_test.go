//go:build amd64 || arm64

package probe

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// watchCommand makes the test program watch a process until it is killed. Its arguments are the process, which picks are
// counted, and the size of the ring buffer. It prints lines: see printed.
const watchCommand = "watch"

// smallRing is a ring buffer that soon overflows when nobody reads it.
const smallRing = 256 << 10

// watchUntilKilled is the program of watchCommand.
func watchUntilKilled(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	target, err := Inspect(pid)
	if err != nil {
		return err
	}
	p, err := open(target, engine.NewClock(), hooksOf(args[1]), uint32(size))
	if err != nil {
		return err
	}
	fmt.Println("attached")
	return p.Run(context.Background(), printed{})
}

// printed prints lost records and ended requests.
type printed struct{}

func (printed) Emit(e event.Event) {
	switch d := e.Data.(type) {
	case *event.Drops:
		var sum uint64
		for _, n := range d {
			sum += n
		}
		fmt.Println("lost", sum)
	case *event.Outcome:
		fmt.Println("generated", d.Generated)
	}
}

// watching is a program that watches a process.
type watching struct {
	cmd   *exec.Cmd
	lines chan string // that it prints; closed at its end
}

func watchProcess(tb testing.TB, pid int, sample string) *watching {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	w := &watching{cmd: exec.Command(self, watchCommand, strconv.Itoa(pid), sample, strconv.Itoa(ringBytes)), lines: make(chan string, 1000)}
	if sample == "stopped" {
		w.cmd.Args[3], w.cmd.Args[4] = "1", strconv.Itoa(smallRing)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	w.cmd.Stderr = os.Stderr
	if err := w.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	return w
}

// expect waits for a line that begins with a text.
func (w *watching) expect(tb testing.TB, text string) string {
	tb.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				tb.Fatalf("watching ended before it printed %q", text)
			}
			if strings.HasPrefix(line, text) {
				return line
			}
		case <-timeout:
			tb.Fatalf("watching printed no %q within 5 minutes", text)
		}
	}
}

func (w *watching) kill() {
	_ = w.cmd.Process.Kill()
	for range w.lines { // until it has ended
	}
	_ = w.cmd.Wait()
}

// patched returns the functions of a process whose code is not that of their file, because a probe is at them.
func patched(tb testing.TB, t *Target) (names []string) {
	tb.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(t.PID))
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		tb.Fatal(err)
	}
	memory, err := os.Open(filepath.Join(dir, "mem"))
	if err != nil {
		tb.Fatal(err)
	}
	defer memory.Close()
	for _, s := range t.Symbols {
		if s.path == "" {
			continue
		}
		var from, to, mapped int64
		i := strings.Index(string(maps), filepath.Base(s.path))
		if i < 0 {
			tb.Fatalf("%s is not mapped", s.path)
		}
		if _, err := fmt.Sscanf(string(maps)[i:], "%x-%x r-xp %x", &from, &to, &mapped); err != nil {
			tb.Fatal(err)
		}
		at := fileOffset(tb, s)
		want, got := make([]byte, 8), make([]byte, 8)
		file, err := os.Open(s.path)
		if err != nil {
			tb.Fatal(err)
		}
		_, err = file.ReadAt(want, at)
		_, err2 := memory.ReadAt(got, from+at-mapped)
		if err := errors.Join(err, err2, file.Close()); err != nil {
			tb.Fatal(err)
		}
		if !slices.Equal(got, want) {
			names = append(names, s.Name)
		}
	}
	return names
}

// fileOffset returns where the code of a function is in its file.
func fileOffset(tb testing.TB, s Symbol) int64 {
	tb.Helper()
	file, err := elf.Open(s.path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	dynamic, _ := file.DynamicSymbols()
	static, _ := file.Symbols()
	for _, x := range append(dynamic, static...) {
		if x.Name != s.Name || x.Value == 0 {
			continue
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_LOAD && x.Value >= p.Vaddr && x.Value < p.Vaddr+p.Filesz {
				return int64(x.Value - p.Vaddr + p.Off)
			}
		}
	}
	tb.Fatalf("%s has no %s", s.path, s.Name)
	return 0
}

// traced returns how many programs trace the system calls of a process.
func traced(tb testing.TB, pid int) (n int) {
	tb.Helper()
	for id, err := ebpf.MapGetNextID(0); err == nil; id, err = ebpf.MapGetNextID(id) {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		var target uint32
		if info, err := m.Info(); err == nil && info.Name == ".rodata" && info.ValueSize == 4 && m.Lookup(uint32(0), &target) == nil && target == uint32(pid) {
			n++
		}
		m.Close()
	}
	return n
}

// eventually waits until something is so: for a minute, since the kernel frees programs when it has time. It counts its
// looks, since this process may be stopped meanwhile.
func eventually(is func() bool) bool {
	for range 6000 {
		if is() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// expectUntouched waits until no probe of a process is left: the kernel removes those of a killed program a little later.
// Its code is then as before, so that it runs as before.
func expectUntouched(tb testing.TB, t *Target) {
	tb.Helper()
	var at []string
	programs := 0
	if !eventually(func() bool {
		at, programs = patched(tb, t), traced(tb, t.PID)
		return len(at)+programs == 0
	}) {
		tb.Fatalf("left: probes at %v, %d variables of programs", at, programs)
	}
	left, err := os.ReadFile("/sys/kernel/tracing/uprobe_events")
	if err != nil {
		tb.Fatal(err)
	}
	if text := string(left); strings.Contains(text, filepath.Base(t.Program)) {
		tb.Fatalf("tracefs has %s", text)
	}
}

// kills returns how often a test kills a process: as LLMTOP_KILLS says, or else a few times.
func kills(t *testing.T, few int) int {
	t.Helper()
	v := os.Getenv("LLMTOP_KILLS")
	if v == "" {
		return few
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKilled kills llmtop at any moment, while the server decodes: no probe is left, and the answers are the same.
func TestKilled(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--parallel", "2", "--threads", "1")
	target, err := Inspect(server.PID)
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"prompt": "The white whale", "n_predict": 300, "temperature": 0, "ignore_eos": true, "return_tokens": true}
	want := complete(t, server.URL, body)
	for i := range kills(t, 10) {
		answered := make(chan reply)
		go func() {
			defer close(answered)
			answered <- complete(t, server.URL, body)
		}()
		w := watchProcess(t, server.PID, "auto")
		if i%2 == 0 {
			w.expect(t, "attached")
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		w.kill()
		expectUntouched(t, target)
		if got := <-answered; !slices.Equal(got.Tokens, want.Tokens) {
			t.Fatalf("tokens %v, want %v", got.Tokens, want.Tokens)
		}
	}
}

// TestServerKilled kills a watched server at any moment: the source says so, and ends no other way.
func TestServerKilled(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--threads", "1")
	for range kills(t, 3) {
		go func(s *peer.Process) {
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			s.Kill()
		}(server)
		watchUntilEnd(t, server.PID)
		server.Kill() // already, or it could not be watched
		if !eventually(func() bool { return traced(t, server.PID) == 0 }) {
			t.Fatal("programs are left")
		}
		server = server.Again(t)
	}
}

// watchUntilEnd watches a process until it ends. It may end at any moment.
func watchUntilEnd(t *testing.T, pid int) {
	t.Helper()
	target, err := Inspect(pid)
	if err != nil {
		t.Log(err)
		return
	}
	p, err := Open(target, engine.NewClock(), engine.Hooks{Experts: true})
	if err != nil {
		t.Log(err)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	h, ended := &heard{}, make(chan error)
	go func() { ended <- p.Run(ctx, h) }()
	h.wait(t, "the end of the process", func(e event.Event) bool {
		info, ok := e.Data.(*event.EngineInfo)
		return ok && info.State == event.EngineStopped
	})
	cancel()
	if err := errors.Join(<-ended, p.Close()); err != nil {
		t.Error(err)
	}
}

// TestStopped stops llmtop while it counts all picks: the server goes on, without the probe of picks, and what nobody
// could read is counted as lost.
func TestStopped(t *testing.T) {
	needProbes(t)
	server := peer.LlamaServer(t, "", "--parallel", "2", "--threads", "1")
	target, err := Inspect(server.PID)
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"prompt": "The white whale", "n_predict": 300, "temperature": 0, "ignore_eos": true, "return_tokens": true}
	want := complete(t, server.URL, body)
	w := watchProcess(t, server.PID, "stopped")
	defer w.kill()
	w.expect(t, "attached")
	complete(t, server.URL, body)
	w.expect(t, "generated 300")
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3 || slices.Contains(patched(t, target), getRows); i++ {
		if got := complete(t, server.URL, body); !slices.Equal(got.Tokens, want.Tokens) {
			t.Fatalf("tokens %v, want %v", got.Tokens, want.Tokens)
		}
		if i == 100 {
			t.Fatal("the probe of picks is still attached")
		}
	}
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	t.Log(w.expect(t, "lost"))
	body["n_predict"] = 77
	measured := false
	for i := 0; i < 20 && !measured; i++ { // a busy machine may lose records of some
		complete(t, server.URL, body)
		measured = w.expect(t, "generated") == "generated 77"
	}
	if !measured {
		t.Error("requests are not measured after the stop")
	}
	w.kill()
	expectUntouched(t, target)
}
