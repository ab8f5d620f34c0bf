//go:build linux

package program_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// settling is how long servers are watched before measuring, so that the last minute is full.
const settling = 65 * time.Second

// BenchmarkWatching measures the cost of polling many servers once per second, each with 30 kB of metrics with rising
// counters, without a screen, and with their table on a screen of 160x45.
func BenchmarkWatching(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		f := newFarm(b, n)
		b.Run(fmt.Sprintf("%d/unseen", n), func(b *testing.B) {
			for b.Loop() {
				reportWatching(b, f, startUnseen(b, append([]string{"attach", "--metrics-listen", "127.0.0.1:0"}, f.URLs()...)...))
			}
		})
		b.Run(fmt.Sprintf("%d/screen", n), func(b *testing.B) {
			for b.Loop() {
				p := start(b, 160, 45, append([]string{"attach"}, f.URLs()...)...)
				p.waitFor(b, "vLLM")
				p.keys(b, "7")
				reportWatching(b, f, p)
				p.kill()
			}
		})
	}
}

// startUnseen runs llmtop without a terminal.
func startUnseen(b *testing.B, args ...string) *program {
	b.Helper()
	path := binary(b)
	p := &program{cmd: exec.Command(path, args...)}
	var stderr bytes.Buffer
	p.cmd.Stderr = &stderr
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if _ = p.cmd.Wait(); b.Failed() {
			b.Logf("llmtop printed: %s", stderr.String())
		}
	})
	return p
}

// reportWatching reports the resource usage of a program that watches a farm, and its real polling rate.
func reportWatching(b *testing.B, f *Farm, p *program) {
	b.Helper()
	time.Sleep(settling)
	polled := func() (n int) {
		for _, s := range f.Servers {
			n += s.Answered()
		}
		return n
	}
	answers, frames, began := polled(), p.count(), time.Now()
	p.watch(b, 15*time.Second)
	seconds := time.Since(began).Seconds()
	b.ReportMetric(float64(polled()-answers)/float64(len(f.Servers))/seconds, "answers/s/server")
	b.ReportMetric(float64(p.count()-frames)/seconds, "frames/s")
}
