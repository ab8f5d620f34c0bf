package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/probe"
)

// TestOwnSamples checks that the process of an attached engine is sampled only if the engine does not do so itself.
func TestOwnSamples(t *testing.T) {
	for name, c := range map[string]struct {
		sends event.Kind
		want  int
	}{"an engine of an SDK": {event.KindToken, 42}, "llmtop": {event.KindHost, 0}, "llmtop in a request": {event.KindUsage, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &ownSamples{clock: engine.NewClock(), sink: new(eventtest.Log)}
				time.Sleep(time.Minute)
				if pid := o.pid(42); pid != 0 {
					t.Errorf("process %d before the engine was reached", pid)
				}
				o.Emit(event.Event{Kind: event.KindEngine})
				if pid := o.pid(42); pid != 0 {
					t.Errorf("process %d before the engine could send a sample", pid)
				}
				time.Sleep(sampleWait)
				o.Emit(event.Event{Kind: c.sends})
				if pid := o.pid(42); pid != c.want {
					t.Errorf("process %d, want %d", pid, c.want)
				}
			})
		})
	}
}

// TestWatchesLocal checks for which engines llmtop looks for GPUs of this machine.
func TestWatchesLocal(t *testing.T) {
	for at, want := range map[string]bool{
		"pid:42": true, "unix:/run/a.sock": true, "http://127.0.0.1:8000": true, "http://gpu1.example:8000": false,
		"prometheus+http://localhost:9090": true, "prometheus+http://prometheus:9090": false, "tcp:gpu1.example:7070": false,
	} {
		w := &watcher{opt: &Options{}, probes: map[string]*probe.Probe{"pid:42": new(probe.Probe)}}
		w.opt.Addresses = []string{at}
		if got := w.watchesLocal(); got != want {
			t.Errorf("%s: %t, want %t", at, got, want)
		}
	}
}
