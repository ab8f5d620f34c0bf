package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// How long a waiting worker stays awake. On its own core it notices the gate within tens of nanoseconds. After
// eagerTime it yields between checks: to other goroutines or, if it has its own thread (where yielding to a goroutine
// would be two thread switches), to other threads, such as the one that it waits for. After spinTime it sleeps; waking
// it up then takes 5 to 50 µs. A worker with its own thread first dozes in the kernel, from where it wakes fastest, see
// sleepOn. After dozeTime, which is longer than any pause within a token, it sleeps in Go's scheduler like the others.
const (
	eagerTime = 3 * time.Microsecond
	spinTime  = 60 * time.Microsecond
	dozeTime  = 500 * time.Microsecond
)

// gate can be opened repeatedly, and counts how often. Waiters first spin and then sleep.
type gate struct {
	opened   atomic.Uint32
	dozers   atomic.Int32 // number of waiters in the kernel, on the word opened
	sleepers atomic.Int32 // number of waiters in Go's scheduler, on awake
	direct   bool         // waiters have their own threads and may doze
	mu       sync.Mutex   // guards awake
	awake    sync.Cond
	_        [64]byte // puts the next field of the pool in another cache line
}

func (g *gate) init(direct bool) { g.direct, g.awake.L = direct, &g.mu }

// count returns how often the gate has been opened.
func (g *gate) count() uint32 { return g.opened.Load() }

// open releases all waiters with the previous count.
func (g *gate) open() {
	g.opened.Add(1)
	if g.dozers.Load() > 0 {
		wakeAll(&g.opened)
	}
	if g.sleepers.Load() > 0 {
		g.mu.Lock() // a sleeper is now either before its last check of opened, or in Wait
		g.awake.Broadcast()
		g.mu.Unlock()
	}
}

// wait returns when the gate has been opened more than count times.
func (g *gate) wait(count uint32) {
	if !g.spin(count) && !(g.direct && g.doze(count)) {
		g.sleep(count)
	}
}

// spin reports whether the gate opened while spinning.
func (g *gate) spin(count uint32) bool {
	var start time.Time
	for round := 0; ; round++ {
		for range 32 {
			if g.opened.Load() != count {
				return true
			}
			pause(1)
		}
		switch {
		case round == 0:
			start = time.Now()
		case time.Since(start) > spinTime:
			return false
		case time.Since(start) <= eagerTime:
		case g.direct:
			yield()
		default:
			runtime.Gosched()
		}
	}
}

// doze reports whether the gate opened within dozeTime.
func (g *gate) doze(count uint32) bool {
	g.dozers.Add(1)
	defer g.dozers.Add(-1)
	for start := time.Now(); g.opened.Load() == count; {
		if time.Since(start) >= dozeTime {
			return false
		}
		sleepOn(&g.opened, count)
	}
	return true
}

func (g *gate) sleep(count uint32) {
	g.sleepers.Add(1)
	defer g.sleepers.Add(-1)
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.opened.Load() == count {
		g.awake.Wait()
	}
}
