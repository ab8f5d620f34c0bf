//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usage is what a process has used so far.
type usage struct {
	cpu time.Duration
	rss int64 // bytes
}

// clockTick is the unit of /proc/PID/stat times; it is 100 Hz on every Linux that Go runs on.
const clockTick = time.Second / 100

// used reads a process's CPU time and resident size.
func used(tb testing.TB, pid int) usage {
	tb.Helper()
	return usedBy(tb, fmt.Sprintf("/proc/%d/stat", pid))
}

// usedBy reads that of a process or thread from its stat file.
func usedBy(tb testing.TB, stat string) usage {
	tb.Helper()
	raw, err := os.ReadFile(stat)
	if err != nil {
		tb.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	return usage{
		cpu: time.Duration(number(11)+number(12)) * clockTick,
		rss: number(21) * int64(os.Getpagesize()),
	}
}

// share is the CPU that the program used over span, in per cent of a core, and its RSS at the end in MB.
func (p *program) share(b *testing.B, span time.Duration) (percent, mb float64) {
	b.Helper()
	before, began := used(b, p.cmd.Process.Pid), time.Now()
	time.Sleep(span)
	after := used(b, p.cmd.Process.Pid)
	return 100 * float64(after.cpu-before.cpu) / float64(time.Since(began)), float64(after.rss) / 1e6
}

// BenchmarkProgramIdle: the whole program at the overview, the model loaded, nothing generated.
func BenchmarkProgramIdle(b *testing.B) {
	p := start(b, 160, 45, "run", "-n", "8", "-p", "Call me Ishmael.")
	p.waitFor(b, "finished")
	time.Sleep(3 * time.Second)
	for b.Loop() {
		percent, mb := p.share(b, 10*time.Second)
		b.ReportMetric(percent, "%core")
		b.ReportMetric(mb, "MB-RSS")
	}
}

// BenchmarkProgramStart: from exec to the first frame on the terminal.
func BenchmarkProgramStart(b *testing.B) {
	var times []time.Duration
	for b.Loop() {
		p := start(b, 200, 60)
		p.waitFor(b, "llmtop")
		times = append(times, time.Since(p.began))
		p.kill()
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1e3, "ms/first-frame")
}

// engineThreads splits a process's CPU time into that of the threads which compute for the engine and the rest. It reports false if
// one of them runs on the first thread, which has the process's name.
func engineThreads(tb testing.TB, pid int) (engine, rest time.Duration, ok bool) {
	tb.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		tb.Fatal(err)
	}
	found := 0
	for _, task := range tasks {
		name, err := os.ReadFile(task + "/comm")
		if err != nil {
			continue // it has just ended
		}
		cpu := usedBy(tb, task+"/stat").cpu
		switch name := string(name); {
		case strings.HasPrefix(name, "llmtop-engine"), strings.HasPrefix(name, "llmtop-worker"):
			found++
			engine += cpu
		default:
			rest += cpu
		}
	}
	return engine, rest, found == runtime.NumCPU()
}

// decoding starts the program so that its engine's threads can be told, and waits until it decodes.
func decoding(b *testing.B, args ...string) *program {
	b.Helper()
	for range 20 {
		p := start(b, 160, 45, args...)
		p.waitFor(b, "tok/s", "live")
		if _, _, ok := engineThreads(b, p.cmd.Process.Pid); ok {
			return p
		}
		p.kill()
	}
	b.Skip("the engine's threads have no names on this system")
	return nil
}

// benchmarkDecoding measures what everything but the engine costs while tokens come, at ten frames a second on 160x45 cells.
func benchmarkDecoding(b *testing.B, args ...string) {
	p := decoding(b, args...)
	time.Sleep(2 * time.Second)
	for b.Loop() {
		engine, rest, _ := engineThreads(b, p.cmd.Process.Pid)
		began := time.Now()
		time.Sleep(10 * time.Second)
		engineAfter, restAfter, _ := engineThreads(b, p.cmd.Process.Pid)
		span := float64(time.Since(began))
		b.ReportMetric(100*float64(engineAfter-engine)/span, "%core-engine")
		b.ReportMetric(100*float64(restAfter-rest)/span, "%core-outside")
		b.ReportMetric(float64(used(b, p.cmd.Process.Pid).rss)/1e6, "MB-RSS")
	}
}

// BenchmarkProgramPaced: the first run as it comes, at 40 tokens/s.
func BenchmarkProgramPaced(b *testing.B) { benchmarkDecoding(b) }

// BenchmarkProgramFlatOut: request after request at full speed.
func BenchmarkProgramFlatOut(b *testing.B) {
	args := []string{"run", "-n", "0", "--temp", "1.2"}
	for range 400 {
		args = append(args, "-p", "Call me Ishmael.")
	}
	benchmarkDecoding(b, args...)
}
