package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// How long a waiting worker stays awake. Alone on its processor it notices the gate within tens of
// nanoseconds; after eagerTime it lets others run in between: other goroutines, or, where it has a thread of its
// own and giving way to a goroutine would be two switches of threads, other threads, such as the one that it waits
// for. After spinTime it sleeps, and waking it up then costs 5 to 50 µs. A worker with a thread of its own dozes in the kernel first,
// from where it comes back fastest; Go's monitor keeps looking at a thread that is there, up to 50,000 times a second, so that after
// dozeTime, when no token can be under way, it sleeps in Go's scheduler like any other.
const (
	eagerTime = 3 * time.Microsecond
	spinTime  = 60 * time.Microsecond
	dozeTime  = 500 * time.Microsecond
)

// gate is opened again and again, and counts how often. Waiters first spin and then sleep.
type gate struct {
	opened   atomic.Uint32
	dozers   atomic.Int32 // wait in the kernel, by the word opened
	sleepers atomic.Int32 // wait in Go's scheduler, by awake
	direct   bool         // waiters have threads of their own and may doze
	mu       sync.Mutex   // guards awake
	awake    sync.Cond
	_        [64]byte // the next field of the pool lies in another cache line
}

func (g *gate) init(direct bool) { g.direct, g.awake.L = direct, &g.mu }

// count is how often the gate has been opened.
func (g *gate) count() uint32 { return g.opened.Load() }

// open lets all pass who wait with the count of before.
func (g *gate) open() {
	g.opened.Add(1)
	if g.dozers.Load() > 0 {
		rouse(&g.opened)
	}
	if g.sleepers.Load() > 0 {
		g.mu.Lock() // a sleeper is now either before its last look at opened, or in Wait
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

// spin says whether the gate opened while it was watched.
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

// doze says whether the gate opened within dozeTime.
func (g *gate) doze(count uint32) bool {
	g.dozers.Add(1)
	defer g.dozers.Add(-1)
	for start := time.Now(); g.opened.Load() == count; {
		if time.Since(start) >= dozeTime {
			return false
		}
		await(&g.opened, count)
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
