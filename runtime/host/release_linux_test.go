package host

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// TestReleaseProgram checks that less of the program's file is resident afterwards, and that the program goes on.
func TestReleaseProgram(t *testing.T) {
	resident := func() uint64 {
		raw, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		kb, ok := cgroup.Keyed(raw, "RssFile")
		if !ok {
			t.Skip("this kernel does not report RssFile")
		}
		return kb
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

// Relocated pages are in mappings that can no longer be written to, but differ from the file.
func TestWrittenMappingsAreKept(t *testing.T) {
	const smaps = `00400000-00ea8000 r-xp 00000000 fe:00 10020442                           /usr/bin/llm top
Rss:                9348 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00ea8000-0253f000 r--p 00aa8000 fe:00 10020442                           /usr/bin/llm top
Anonymous:             0 kB
Swap:                  0 kB
0253f000-02540000 r--p 0213f000 fe:00 10020442                           /usr/bin/llm top
Anonymous:             4 kB
Swap:                  0 kB
02540000-02644000 rw-p 02140000 fe:00 10020442                           /usr/bin/llm top
Anonymous:             0 kB
Swap:                  0 kB
02644000-02645000 r--p 02140000 fe:00 10020442                           /usr/bin/llm top
Anonymous:             0 kB
Swap:                  4 kB
3e49d1800000-3e49d2c00000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
Swap:                  0 kB
7f88393bf000-7f88393e5000 r--p 00000000 fe:00 326269                     /usr/lib/libc.so.6
Anonymous:             0 kB
Swap:                  0 kB
`
	want := [][2]uintptr{{0x400000, 0xea8000}, {0xea8000, 0x253f000}}
	if got := unwritten(smaps, "/usr/bin/llm top"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
