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

// child is the environment variable by which llmtop starts itself to measure the copy bandwidth, in a process of its own, so that the
// buffers count neither in llmtop's memory nor in its peak.
const child = "LLMTOP_CHILD"

// settle is how long the measurement waits for the program to have started.
const settle = 2 * time.Second

// measureCopy starts the child once and sends what it measured, in B/s; nothing if that fails.
func measureCopy(ctx context.Context, out chan<- float64) {
	if !hasChildMain.Load() {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settle):
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), child+"=copy")
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

// ChildMain does the work of a child process and reports whether this process is one. A main function calls it first.
func ChildMain() bool {
	hasChildMain.Store(true)
	if os.Getenv(child) != "copy" {
		return false
	}
	fmt.Println(CopyBandwidth(runtime.GOMAXPROCS(0)))
	return true
}

const (
	copyBytes  = 64 << 20 // of each thread's buffers together: beyond any cache that a core has to itself
	copyRounds = 4
)

// CopyBandwidth measures the best of a few rounds in which every thread copies its own buffer, in B/s; bytes read and bytes written both
// count, as they do in STREAM.
func CopyBandwidth(threads int) (best float64) {
	type pair struct{ from, to []byte }
	pairs := make([]pair, threads)
	for i := range pairs {
		pairs[i] = pair{make([]byte, copyBytes/2), make([]byte, copyBytes/2)}
		for j := 0; j < copyBytes/2; j += 4096 { // touch every page of both
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
