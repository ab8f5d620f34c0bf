package host

import (
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
)

// childEnv is the environment variable with which llmtop starts itself as a child process to measure the copy
// bandwidth, so that the buffers count neither in llmtop's memory nor in its peak.
const childEnv = "LLMTOP_CHILD"

// copyDelay delays the measurement until the program has started.
const copyDelay = 2 * time.Second

// measureCopy runs the child once and sends its result in B/s; it sends nothing if that fails.
func measureCopy(ctx context.Context, out chan<- float64) {
	if !hasChildMain.Load() {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(copyDelay):
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), childEnv+"=copy")
	raw, err := cmd.Output()
	if err != nil {
		return
	}
	if v, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64); err == nil && v > 0 {
		out <- v
	}
}

// hasChildMain is set once main has called ChildMain: a program that never does, such as a test, must not start itself.
var hasChildMain atomic.Bool

// ChildMain runs the work of a child process, and reports whether this process is one. A main function calls it first.
func ChildMain() bool {
	hasChildMain.Store(true)
	if os.Getenv(childEnv) != "copy" {
		return false
	}
	fmt.Println(CopyBandwidth(runtime.GOMAXPROCS(0)))
	return true
}

const (
	copyBytes  = 64 << 20 // of all threads' buffers together: larger than the caches of a core
	copyRounds = 4
)

// CopyBandwidth measures copying in B/s: every thread copies its own buffer, and the best of a few rounds counts. Bytes
// read and bytes written both count, as in STREAM.
func CopyBandwidth(threads int) (best float64) {
	type pair struct{ from, to []byte }
	pairs := make([]pair, threads)
	for i := range pairs {
		pairs[i] = pair{make([]byte, copyBytes/2), make([]byte, copyBytes/2)}
		for j := 0; j < copyBytes/2; j += 4096 { // touch every page of both buffers
			pairs[i].from[j], pairs[i].to[j] = byte(j>>12), 1
		}
	}
	for range copyRounds {
		var group sync.WaitGroup
		began := time.Now()
		for _, p := range pairs {
			group.Go(func() { copy(p.to, p.from) })
		}
		group.Wait()
		best = max(best, float64(threads*copyBytes)/time.Since(began).Seconds())
	}
	return best
}
