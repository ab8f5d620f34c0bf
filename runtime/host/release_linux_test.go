package host

import (
	"os"
	"runtime"
	"testing"

	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// TestReleaseProgram checks that less of the program's file is resident afterwards, and that the program goes on.
func TestReleaseProgram(t *testing.T) {
	resident := func() int64 {
		raw, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		kb, ok := cgroup.Keyed(raw, "RssFile")
		if !ok {
			t.Skip("this kernel does not report RssFile")
		}
		return int64(kb)
	}
	before := resident()
	if err := ReleaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := resident(); after >= before {
		t.Errorf("%d kB of files resident, %d before", after, before)
	}
	runtime.GC()
}
