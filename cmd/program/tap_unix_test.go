//go:build unix

package program_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTapFile: a file of packets is a screen with the keys of a replay: its requests, one of them with its network, and its
// clients.
func TestTapFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "capture.pcap"), captured(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startIn(t, dir, "tap", "capture.pcap")
	p.waitFor(t, "tiny")
	p.keys(t, "G") // to the end
	p.waitFor(t, "ended", "3 done", "10.0.0.8")
	p.keys(t, "2")
	p.waitFor(t, "3 finished", "10.0.0.8")
	p.keys(t, "3")
	p.waitFor(t, "TTFT 50.0 ms", "network 4.00 ms round trip", "TPOT 20.0 ms")
	if r := p.report(t, dir); r.Engine.Name != "tap" {
		t.Errorf("report %+v", r)
	}
	p.quit(t)
}
