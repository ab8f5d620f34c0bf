package tensor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// taskFunc is a function as a Task.
type taskFunc func(w *Worker)

func (f taskFunc) Do(w *Worker) { f(w) }

func TestPoolRunsEveryWorkerOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		p := NewPool(n)
		var calls [8]atomic.Int32
		for range 100 {
			p.Run(taskFunc(func(w *Worker) { calls[w.ID()].Add(1) }))
		}
		p.Close()
		for i := range n {
			if got := calls[i].Load(); got != 100 {
				t.Errorf("%d threads: worker %d ran %d times, want 100", n, i, got)
			}
		}
	}
}

// The barrier orders memory accesses: writes of one worker in a phase are visible to all others in the next.
func TestBarrierOrdersPhases(t *testing.T) {
	const phases = 200
	for _, n := range []int{1, 2, 5} {
		p := NewPool(n)
		data := make([]int, n)
		bad := make([]int, n)
		p.Run(taskFunc(func(w *Worker) {
			for phase := 1; phase <= phases; phase++ {
				data[w.ID()] = phase
				w.Barrier()
				for _, v := range data {
					if v != phase {
						bad[w.ID()]++
					}
				}
				w.Barrier()
			}
		}))
		p.Close()
		for i, b := range bad {
			if b != 0 {
				t.Errorf("%d threads: worker %d saw %d values of another phase", n, i, b)
			}
		}
	}
}

func TestTakeHandsOutEachPieceOnce(t *testing.T) {
	const pieces, phases = 50, 4
	p := NewPool(3)
	defer p.Close()
	var got [phases][pieces]atomic.Int32
	p.Run(taskFunc(func(w *Worker) {
		for phase := range phases {
			for i := w.Take(); i < pieces; i = w.Take() {
				got[phase][i].Add(1)
			}
			w.Barrier()
		}
	}))
	for phase := range phases {
		for i := range pieces {
			if n := got[phase][i].Load(); n != 1 {
				t.Fatalf("phase %d: piece %d was handed out %d times", phase, i, n)
			}
		}
	}
}

func TestSplitCoversAllRows(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		p := &Pool{workers: make([]Worker, threads)}
		for _, n := range []int{0, 1, 15, 16, 17, 64, 191, 192, 4096} {
			end := 0
			for i := range threads {
				w := Worker{pool: p, id: i}
				lo, hi := w.Split(n, RowTile)
				if lo != end || lo > hi || (hi != n && hi%RowTile != 0) {
					t.Fatalf("%d rows, %d threads: worker %d got %d..%d after %d", n, threads, i, lo, hi, end)
				}
				end = hi
			}
			if end != n {
				t.Fatalf("%d rows, %d threads: ends at %d", n, threads, end)
			}
		}
	}
}

// A panic on any worker is passed to the caller, releases waiting workers, and leaves the pool usable.
func TestPoolPanics(t *testing.T) {
	cause := errors.New("boom")
	p := NewPool(3)
	defer p.Close()
	for culprit := range 3 {
		got := func() (v any) {
			defer func() { v = recover() }()
			p.Run(taskFunc(func(w *Worker) {
				w.Barrier()
				if w.ID() == culprit {
					panic(cause)
				}
				w.Barrier()
				t.Errorf("worker %d passed the barrier that %d never reached", w.ID(), culprit)
			}))
			return nil
		}()
		if e, ok := got.(error); !ok || !strings.HasPrefix(e.Error(), "panic in worker: boom\n") || !strings.Contains(e.Error(), "TestPoolPanics") {
			t.Fatalf("culprit %d: Run panicked with %v", culprit, got)
		}
		var ran atomic.Int32
		p.Run(taskFunc(func(w *Worker) { w.Barrier(); ran.Add(1) }))
		if ran.Load() != 3 {
			t.Fatalf("after a panic %d workers ran", ran.Load())
		}
	}
}

// With one CPU for three workers every barrier needs the scheduler; with three, each has a thread if the system
// supports it. Pauses between jobs make the workers sleep.
func TestPoolProgress(t *testing.T) {
	for _, processors := range []int{1, 3} {
		restore := runtime.GOMAXPROCS(processors)
		p := NewPool(3)
		var sum atomic.Int32
		for range 20 {
			p.Run(taskFunc(func(w *Worker) {
				for range 10 {
					sum.Add(1)
					w.Barrier()
				}
			}))
			time.Sleep(2 * spinTime)
		}
		p.Close()
		runtime.GOMAXPROCS(restore)
		if sum.Load() != 600 {
			t.Errorf("%d processors: workers counted to %d, want 600", processors, sum.Load())
		}
	}
}

func TestPoolEndsItsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	p := NewPool(4)
	p.Run(taskFunc(func(w *Worker) { w.Barrier() }))
	p.Close()
	p.Close() // closing twice is allowed
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a closed pool ran a task")
			}
		}()
		p.Run(taskFunc(func(*Worker) {}))
	}()
	left := runtime.NumGoroutine()
	for range 1000 { // a goroutine is counted for a moment after its last statement
		if left = runtime.NumGoroutine(); left <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before the pool, %d after it was closed", before, left)
}

func TestRunDoesNotAllocate(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	task := Task(taskFunc(func(w *Worker) { w.Barrier() }))
	if n := testing.AllocsPerRun(100, func() { p.Run(task) }); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}

// TestThreads finds the workers among the threads of this process, by id and name.
func TestThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		if ids := NewPool(1).ThreadIDs(); ids != nil {
			t.Errorf("threads %v on a system that does not report them", ids)
		}
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	p := NewPool(4)
	ids := p.ThreadIDs()
	if len(ids) != 3 {
		t.Errorf("%d threads besides the caller's, want 3", len(ids))
	}
	for i, id := range ids {
		name, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/comm", id))
		first := id == os.Getpid() // the main thread keeps the name of the process
		if want := fmt.Sprintf("llmtop-worker-%d\n", i+1); err != nil || string(name) != want && !first {
			t.Errorf("thread %d is called %q, %v; want %q", id, name, err, want)
		}
	}
	p.Close()
	if ids := NewPool(1).ThreadIDs(); ids == nil || len(ids) != 0 {
		t.Errorf("one worker has the threads %v, want none", ids)
	}
	crowd := NewPool(5)
	defer crowd.Close()
	if ids := crowd.ThreadIDs(); ids != nil {
		t.Errorf("five workers on four CPUs have the threads %v, want none", ids)
	}
}

func BenchmarkRun(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	task := Task(taskFunc(func(*Worker) {}))
	for b.Loop() {
		p.Run(task)
	}
}

// BenchmarkBarrier measures a barrier between two workers that are awake.
func BenchmarkBarrier(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	n := b.N
	p.Run(taskFunc(func(w *Worker) {
		for range n {
			w.Barrier()
		}
	}))
}
