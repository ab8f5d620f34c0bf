package host

import (
	"os"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// BenchmarkSystem measures what the samples of this machine, of this process and of its limits cost.
func BenchmarkSystem(b *testing.B) {
	l := newLinux("/")
	defer l.close()
	b.Run("machine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var h event.Host
			l.machine(&h, time.Second)
		}
	})
	b.Run("process", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.process(os.Getpid(), time.Second)
		}
	})
	b.Run("limits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var h event.Host
			l.limits(&h, os.Getpid(), time.Second)
		}
	})
}
