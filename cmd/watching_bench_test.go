//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/peer"
)

// settling is how long servers are watched before what that takes is measured: the last minute is full then.
const settling = 65 * time.Second

// BenchmarkWatching: what it takes to watch so many servers at one question a second, each with 30 kB of metrics of which all counters rise, without a
// screen, and with the table of them on a screen of 160x45.
func BenchmarkWatching(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		f := newFarm(b, n)
		b.Run(fmt.Sprintf("%d/unseen", n), func(b *testing.B) {
			for b.Loop() {
				watched(b, f, unseen(b, append([]string{"attach", "--metrics-listen", "127.0.0.1:0"}, f.URLs()...)...))
			}
		})
		b.Run(fmt.Sprintf("%d/screen", n), func(b *testing.B) {
			for b.Loop() {
				p := start(b, 160, 45, append([]string{"attach"}, f.URLs()...)...)
				p.waitFor(b, "vLLM")
				p.keys(b, "7")
				watched(b, f, p)
				p.kill()
			}
		})
	}
}

// unseen runs llmtop without a terminal.
func unseen(b *testing.B, args ...string) *program {
	b.Helper()
	path, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	p := &program{cmd: exec.Command(path, args...)}
	var said bytes.Buffer
	p.cmd.Stderr = &said
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if _ = p.cmd.Wait(); b.Failed() {
			b.Logf("llmtop said: %s", said.String())
		}
	})
	return p
}

// watched reports what a program takes that watches a farm, and how often it really asks.
func watched(b *testing.B, f *peer.Farm, p *program) {
	b.Helper()
	time.Sleep(settling)
	told := func() (n int) {
		for _, s := range f.Servers {
			n += s.Told()
		}
		return n
	}
	answers, frames, began := told(), p.count(), time.Now()
	p.watch(b, 15*time.Second)
	seconds := time.Since(began).Seconds()
	b.ReportMetric(float64(told()-answers)/float64(len(f.Servers))/seconds, "answers/s/server")
	b.ReportMetric(float64(p.count()-frames)/seconds, "frames/s")
}
