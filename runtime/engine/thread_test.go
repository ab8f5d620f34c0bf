package engine_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/llmtop/llmtop/runtime/engine"
)

// threadedFake is an engine that reports its threads. They include the thread of Forward if alsoLeader is set.
type threadedFake struct {
	*fakeEngine
	ids        []int
	alsoLeader bool
	leader     int // thread of the last Forward; 0 if not available
}

func (e *threadedFake) Threads() []int { return e.ids }

// Forward adds its own thread to the reported ones.
func (e *threadedFake) Forward(b *engine.Batch) error {
	e.leader = threadID()
	if e.alsoLeader && !slices.Contains(e.ids, e.leader) {
		e.ids = append(e.ids, e.leader)
	}
	return e.fakeEngine.Forward(b)
}

// threadID returns the calling goroutine's thread id, 0 if not available.
func threadID() int {
	link, err := os.Readlink("/proc/thread-self") // "PID/task/TID"
	if err != nil {
		return 0
	}
	id, err := strconv.Atoi(filepath.Base(link))
	if err != nil {
		return 0
	}
	return id
}

// TestThreads: the reported threads are those of the engine and the one of Run, each once; none if the list is
// incomplete.
func TestThreads(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("threads have ids on Linux only")
	}
	for name, c := range map[string]struct {
		ids        []int
		alsoLeader bool
		want       int
	}{
		"two workers":                 {[]int{1 << 23, 1 << 24}, false, 3},
		"no workers":                  {[]int{}, false, 1},
		"the leader is a worker, too": {[]int{1 << 23}, true, 2},
		"workers unknown":             {nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &threadedFake{fakeEngine: newFake(t, 1, 64, 16), ids: c.ids, alsoLeader: c.alsoLeader}
				b := start(e.fakeEngine, engine.Options{}, loaded(e))
				<-b.mustSubmit(t, "abc", 2).Done()
				synctest.Wait()
				got := b.Threads()
				if len(got) != c.want || c.want > 0 && !slices.Contains(got, e.leader) {
					t.Errorf("threads %v, want %d with %d, which computed", got, c.want, e.leader)
				}
				if err := b.stop(); err != nil {
					t.Error(err)
				}
				if got := b.Threads(); got != nil {
					t.Errorf("threads %v after the end", got)
				}
			})
		})
	}
}

// TestThreadsUnknown: no threads are reported if the engine does not report them or is not loaded.
func TestThreadsUnknown(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{}, func(t *testing.T, b *bench) {
		if got := b.Threads(); got != nil {
			t.Errorf("threads %v of an engine that does not report them", got)
		}
	})
	if got := engine.New(nil, engine.Options{}).Threads(); got != nil {
		t.Errorf("threads %v before Run", got)
	}
}
