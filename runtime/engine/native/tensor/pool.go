package tensor

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// RowTile is the row granularity at which matrix products are fastest.
const RowTile = 16

// Task is work in which every worker of a pool takes part. Pass a pointer, so that Run does not allocate.
type Task interface {
	// Do is called once on each worker, concurrently.
	Do(w *Worker)
}

// Pool is a fixed number of workers; the caller of Run is the first of them.
type Pool struct {
	workers  []Worker
	threads  []int // thread ids of the helpers, if they have their own threads
	task     Task
	closing  bool
	finished atomic.Int32 // number of helpers that have finished the task
	failed   atomic.Bool  // a worker has panicked; the others leave at their next barrier
	mu       sync.Mutex   // guards cause
	cause    error
	busy     sync.Mutex // held during Run and Close
	helpers  sync.WaitGroup

	_       [64]byte
	start   gate // opens once per job
	end     gate // opens when all helpers have finished a job
	meet    gate // opens when all workers have arrived at a barrier, or one has failed
	arrived atomic.Int32
	_       [64]byte
	taken   atomic.Int64 // number of pieces taken since the last barrier
	_       [64]byte
}

// Worker is one worker of a running task.
type Worker struct {
	pool *Pool
	id   int
}

// abandoned is the panic value with which the other workers leave a task that has panicked.
type abandoned struct{}

// NewPool starts n workers, at least one; the first is the caller of Run, which needs no goroutine. On Linux, each of
// the others has its own thread if Go may use at least n CPUs: with more workers, waiting threads would occupy CPUs
// that others need.
func NewPool(n int) *Pool {
	p := &Pool{workers: make([]Worker, max(n, 1))}
	direct := ownThreads && len(p.workers) <= runtime.GOMAXPROCS(0)
	for _, g := range []*gate{&p.start, &p.end, &p.meet} {
		g.init(direct)
	}
	for i := range p.workers {
		p.workers[i] = Worker{pool: p, id: i}
	}
	if direct {
		p.threads = make([]int, len(p.workers)-1)
	}
	var settled sync.WaitGroup
	settled.Add(len(p.threads))
	for i := range p.workers[1:] {
		p.helpers.Go(func() {
			if direct {
				p.threads[i] = claimThread(i + 1)
				settled.Done()
			}
			p.workers[i+1].serve()
		})
	}
	settled.Wait()
	return p
}

// ThreadIDs returns the operating system's ids of the workers' threads, without the caller of Run. Nil if the workers
// do not have their own threads; see NewPool. The threads end with Close.
func (p *Pool) ThreadIDs() []int { return slices.Clone(p.threads) }

// Run calls task.Do on all workers and returns when all have finished. Concurrent calls run one after another. If Do
// panics on any worker, Run panics with an error that has the value and the worker's stack, and the pool remains usable.
func (p *Pool) Run(task Task) {
	p.busy.Lock()
	defer p.busy.Unlock()
	if p.closing {
		panic("tensor: Run on a closed pool")
	}
	p.task = task
	p.finished.Store(0)
	p.arrived.Store(0)
	p.taken.Store(0)
	ended := p.end.count()
	p.start.open()
	p.workers[0].call()
	if len(p.workers) > 1 {
		p.end.wait(ended)
	}
	p.task = nil
	if p.failed.Swap(false) {
		cause := p.cause
		p.cause = nil
		panic(cause)
	}
}

// Close ends the workers' goroutines. The pool must not be used afterwards.
func (p *Pool) Close() {
	p.busy.Lock()
	defer p.busy.Unlock()
	if !p.closing {
		p.closing = true
		p.start.open()
		p.helpers.Wait()
	}
}

// serve runs jobs until the pool is closed.
func (w *Worker) serve() {
	p := w.pool
	for jobs := uint32(0); ; jobs++ {
		p.start.wait(jobs)
		if p.closing {
			return
		}
		w.call()
		if int(p.finished.Add(1)) == len(p.workers)-1 {
			p.end.open()
		}
	}
}

// call runs the task. A panic is recorded in the pool and releases the workers that wait at a barrier.
func (w *Worker) call() {
	defer func() {
		v := recover()
		if _, ok := v.(abandoned); v == nil || ok {
			return
		}
		w.pool.fail(fmt.Errorf("panic in worker: %v\n%s", v, debug.Stack()))
	}()
	w.pool.task.Do(w)
}

// fail records the first failure of a job.
func (p *Pool) fail(cause error) {
	p.mu.Lock()
	if p.cause == nil {
		p.cause = cause
	}
	p.mu.Unlock()
	p.failed.Store(true)
	p.meet.open()
}

// Barrier returns when every worker of the task has called it. If another worker has panicked, it does not return but
// ends the task on this worker.
func (w *Worker) Barrier() {
	p := w.pool
	met := p.meet.count() // read before failed, so that no failure is missed below
	if p.failed.Load() {
		panic(abandoned{})
	}
	if int(p.arrived.Add(1)) == len(p.workers) {
		p.arrived.Store(0)
		p.taken.Store(0)
		p.meet.open()
		return
	}
	p.meet.wait(met)
	if p.failed.Load() {
		panic(abandoned{})
	}
}

// ID returns the worker's number, from 0 to Threads()-1.
func (w *Worker) ID() int { return w.id }

// Threads returns the number of workers of the task.
func (w *Worker) Threads() int { return len(w.pool.workers) }

// Split returns this worker's share lo..hi of n rows, cut at multiples of unit.
func (w *Worker) Split(n, unit int) (lo, hi int) {
	units, threads := (n+unit-1)/unit, w.Threads()
	return min(units*w.id/threads*unit, n), min(units*(w.id+1)/threads*unit, n)
}

// Take returns the next of the numbers 0, 1, 2, … that the workers share since the last barrier.
func (w *Worker) Take() int { return int(w.pool.taken.Add(1) - 1) }
