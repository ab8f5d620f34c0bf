package watch

import (
	"testing"

	"github.com/llmtop/llmtop/runtime/source/probe"
)

// TestWatchesLocal checks for which engines llmtop looks for GPUs of this machine.
func TestWatchesLocal(t *testing.T) {
	for at, want := range map[string]bool{
		"pid:42": true, "unix:/run/a.sock": true, "http://127.0.0.1:8000": true, "http://gpu1.example:8000": false,
		"prometheus+http://localhost:9090": true, "prometheus+http://prometheus:9090": false, "tcp:gpu1.example:7070": false, "tcp:127.0.0.1:7070": true,
	} {
		w := &watcher{opt: &Options{}, probes: map[string]*probe.Probe{"pid:42": new(probe.Probe)}}
		w.opt.Addresses = []string{at}
		if got := w.watchesLocal(); got != want {
			t.Errorf("%s: %t, want %t", at, got, want)
		}
	}
}
