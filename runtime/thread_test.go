package runtime_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/llmtop/llmtop/runtime"
)

// threadedFake is an engine that says on which threads it computes. The thread of Forward is one of them if alsoLeader is set.
type threadedFake struct {
	*fakeEngine
	ids        []int
	alsoLeader bool
	leader     int // thread of the last Forward; 0 unknown
}

func (e *threadedFake) Threads() []int { return e.ids }

// Forward adds its own thread to those that the engine names.
func (e *threadedFake) Forward(b *runtime.Batch) error {
	e.leader = threadID()
	if e.alsoLeader && !slices.Contains(e.ids, e.leader) {
		e.ids = append(e.ids, e.leader)
	}
	return e.fakeEngine.Forward(b)
}

// threadID is the calling goroutine's thread, 0 where the system does not tell.
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

// TestThreads: the threads that compute are those of the engine and the one of Run, none twice, and nothing unless all are known.
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
				b := start(e.fakeEngine, runtime.Options{}, runtime.Loaded(e))
				<-b.ask(t, "abc", 2).Done()
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

// TestThreadsUnknown: an engine that does not tell its threads, or is not loaded, has none that could be told apart.
func TestThreadsUnknown(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), runtime.Options{}, func(t *testing.T, b *bench) {
		if got := b.Threads(); got != nil {
			t.Errorf("threads %v of an engine that does not tell", got)
		}
	})
	if got := runtime.New(nil, runtime.Options{}).Threads(); got != nil {
		t.Errorf("threads %v before Run", got)
	}
}
