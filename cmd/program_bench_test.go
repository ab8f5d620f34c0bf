//go:build linux

package cmd_test

import (
	"fmt"
	"os"
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
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
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
	p := start(b, 200, 60, "run", "-n", "8", "-p", "Call me Ishmael.")
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
