//go:build linux

package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpu is the processor time of the threads of a process: those that compute for the engine, and the rest. It excludes
// ended threads; Go keeps its own.
type cpu struct{ engine, rest time.Duration }

// spent returns the processor time of a process, and the number of the engine's threads, found by name.
func spent(tb testing.TB, pid int) (used cpu, engineThreads int) {
	tb.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for _, task := range tasks {
		name, err := os.ReadFile(task + "/comm")
		sched, err2 := os.ReadFile(task + "/schedstat")
		if err != nil || err2 != nil {
			continue // it just ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(sched))[0], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		switch name := string(name); {
		case strings.HasPrefix(name, "llmtop-engine"), strings.HasPrefix(name, "llmtop-worker"):
			engineThreads++
			used.engine += time.Duration(ns)
		default:
			used.rest += time.Duration(ns)
		}
	}
	return used, engineThreads
}

// resident returns the resident size of a process in MB.
func resident(tb testing.TB, pid int) float64 {
	tb.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		tb.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return float64(pages) * float64(os.Getpagesize()) / 1e6
}

// watch reports the resource usage of the program while it runs undisturbed.
func (p *program) watch(b *testing.B, span time.Duration) {
	b.Helper()
	before, _ := spent(b, p.cmd.Process.Pid)
	began := time.Now()
	time.Sleep(span)
	after, _ := spent(b, p.cmd.Process.Pid)
	percent := 100 / float64(time.Since(began))
	b.ReportMetric(percent*float64(after.engine-before.engine), "%core-engine")
	b.ReportMetric(percent*float64(after.rest-before.rest), "%core-outside")
	b.ReportMetric(resident(b, p.cmd.Process.Pid), "MB-RSS")
}

// BenchmarkProgramIdle measures the whole program at the overview, with the model loaded and nothing generated, and other
// monitors that draw once a second or every two seconds.
func BenchmarkProgramIdle(b *testing.B) {
	b.Run("llmtop", func(b *testing.B) {
		p := start(b, 160, 45, "run", "-n", "8", "-p", "Call me Ishmael.")
		p.waitFor(b, "finished")
		p.idle(b, 3*time.Second)
	})
	for _, other := range [][]string{{"htop", "--delay=10"}, {"btop", "--utf-force"}} {
		b.Run(other[0], func(b *testing.B) {
			if _, err := exec.LookPath(other[0]); err != nil {
				b.Skip(err)
			}
			startCommand(b, 160, 45, exec.Command(other[0], other[1:]...)).idle(b, 8*time.Second)
		})
	}
}

// idle reports the resource usage of the program after a while.
func (p *program) idle(b *testing.B, settle time.Duration) {
	b.Helper()
	time.Sleep(settle)
	for b.Loop() {
		p.watch(b, 20*time.Second)
	}
	p.kill()
}

// BenchmarkProgramStart measures the time from exec to the first frame on the terminal.
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

// decoding starts the program and waits until it decodes with all engine threads named: the first thread of a process
// keeps the name of the process.
func decoding(b *testing.B, args ...string) *program {
	b.Helper()
	for range 20 {
		p := start(b, 160, 45, args...)
		p.waitFor(b, "tok/s", "live")
		if _, named := spent(b, p.cmd.Process.Pid); named == runtime.NumCPU() {
			return p
		}
		p.kill()
	}
	b.Skip("the engine's threads have no names on this system")
	return nil
}

// benchmarkDecoding measures the cost of everything but the engine during decode, at ten frames/s on 160x45 cells, on the
// screen that the keys open.
func benchmarkDecoding(b *testing.B, keys string, args ...string) {
	p := decoding(b, args...)
	p.keys(b, keys)
	time.Sleep(2 * time.Second)
	for b.Loop() {
		p.watch(b, 10*time.Second)
	}
}

// BenchmarkProgramPaced measures llmtop without arguments, at 40 tokens/s.
func BenchmarkProgramPaced(b *testing.B) { benchmarkDecoding(b, "") }

// BenchmarkProgramUnlimited measures consecutive requests at full speed, at the overview and at its ITL pane in full
// screen.
func BenchmarkProgramUnlimited(b *testing.B) {
	args := []string{"run", "-n", "0", "--temp", "1.2"}
	for range 400 {
		args = append(args, "-p", "Call me Ishmael.")
	}
	b.Run("overview", func(b *testing.B) { benchmarkDecoding(b, "", args...) })
	b.Run("ITL", func(b *testing.B) { benchmarkDecoding(b, "\t\r", args...) })
}
