package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// childEnv is the environment variable with which llmtop starts itself as a child process to measure the read
// bandwidth, so that the buffers count neither in llmtop's memory nor in its peak.
const childEnv = "LLMTOP_CHILD"

// measureRead runs the child once and sends its result, see event.Host.ReadBandwidth; it sends nothing if that fails.
func measureRead(ctx context.Context, out chan<- []float64) {
	if !hasChildMain.Load() {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), childEnv+"=read")
	raw, err := cmd.Output()
	if err != nil {
		return
	}
	var list []float64
	for _, word := range strings.Fields(string(raw)) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || !(v > 0) {
			return
		}
		list = append(list, v)
	}
	if len(list) > 0 {
		out <- list
	}
}

// hasChildMain is set once main has called ChildMain: a program that never does, such as a test, must not start itself.
var hasChildMain atomic.Bool

// ChildMain runs the work of a child process, and reports whether this process is one. A main function calls it first.
func ChildMain() bool {
	hasChildMain.Store(true)
	if os.Getenv(childEnv) != "read" {
		return false
	}
	if available, ok := cgroup.Available(); ok && available < readOfMemory*int64(readBytes()) {
		return true
	}
	cores := runtime.GOMAXPROCS(0)
	for threads := 1; ; threads = min(2*threads, cores) {
		fmt.Println(ReadBandwidth(threads))
		if threads == cores {
			return true
		}
	}
}

const (
	readLeast, readMost = 256 << 20, 512 << 20 // of all threads' buffers: larger than the caches
	readOfMemory        = 8                    // available memory must be this many times as large
	readRounds          = 5
	readStreams         = 8 // at a time: one alone does not keep the memory of a core busy
	readBlock           = 512
)

// readBytes returns the size of all buffers.
func readBytes() int { return min(max(2*cpuid.CPU.Cache.L3, readLeast), readMost) }

// ReadBandwidth measures reading memory in B/s: every thread reads its own part of the buffers, and the best of a few rounds
// counts.
func ReadBandwidth(threads int) (best float64) {
	stream := readBytes() / threads / readStreams / readBlock * readBlock
	buffers := make([][]byte, threads)
	for i := range buffers {
		buffers[i] = make([]byte, readStreams*stream)
		for j := 0; j < len(buffers[i]); j += 4096 { // an untouched page would be read from the cache
			buffers[i][j] = 1
		}
	}
	for range readRounds {
		var group sync.WaitGroup
		began := time.Now()
		for _, b := range buffers {
			group.Go(func() {
				for at := 0; at < stream; at += readBlock {
					for from := at; from < len(b); from += stream {
						bytes.IndexByte(b[from:from+readBlock], 2) // not in it, so that all of it is read
					}
				}
			})
		}
		group.Wait()
		best = max(best, float64(threads*len(buffers[0]))/time.Since(began).Seconds())
	}
	return best
}
