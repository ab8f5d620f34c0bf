package host

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

const (
	// relistThreads is the interval between listings of the engine's processes, threads, control groups and cores.
	relistThreads = time.Second
	// maxOpenThreads is the number of threads of all processes whose files stay open between samples.
	maxOpenThreads = 256
	// lateSample is the delay from which a sample waits for a signal that explains it, signalDelay is how long at most: Go's
	// runtime may take that long to deliver SIGCONT to a process that continues on a busy machine.
	lateSample, signalDelay = 5 * time.Millisecond, 100 * time.Millisecond
)

// linuxUsage reads /proc below the root of linux. It keeps the files of the processes open.
type linuxUsage struct {
	*linux
	opt      UsageOptions
	own      bool // the engine runs in this process
	only     bool // threads are those of the engine, not all of this process
	resumed  chan os.Signal
	gc       gcCounter
	groups   *cgroup.Groups // of the main process
	cores    event.Reading  // that the main process may use
	listed   time.Time      // zero: list again
	pids     []int
	threads  []*usedThread
	stopped  map[int]bool // processes that were stopped at the last sample
	counters map[counter]uint64
	took     time.Duration // CPU time of the last sample
}

// usedThread is a thread with its counters at the last sample.
type usedThread struct {
	pid, id int
	file    string // its schedstat
	clock   int32  // of its CPU time; only of threads of this process
	schedstat
	cpu   uint64 // ns, by its clock
	known bool   // the counters are those of the last sample
}

func newUsageReader(opt UsageOptions) usageReader { return usageReaderAt("/", opt) }

func usageReaderAt(root string, opt UsageOptions) *linuxUsage {
	r := &linuxUsage{linux: newLinux(root), opt: opt, own: opt.Processes == nil, resumed: make(chan os.Signal, 1)}
	if r.own {
		r.opt.Processes = func() []int { return []int{os.Getpid()} }
		signal.Notify(r.resumed, syscall.SIGCONT)
	}
	return r
}

func (r *linuxUsage) close() {
	signal.Stop(r.resumed)
	r.linux.close()
}

func (r *linuxUsage) reset() {
	r.listed, r.threads, r.counters, r.stopped = time.Time{}, nil, make(map[counter]uint64), make(map[int]bool)
	r.gc.sampled = false
	select {
	case <-r.resumed:
	default:
	}
}

func (r *linuxUsage) cost() time.Duration { return r.took }

func (r *linuxUsage) read(interval, late time.Duration) (event.Usage, bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	defer func() { r.took = time.Duration(cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - began) }()
	unlisted := r.own && !r.only && r.opt.EngineThreads != nil && len(r.opt.EngineThreads()) > 0
	if unlisted || time.Since(r.listed) >= relistThreads {
		r.list()
	}
	u := event.Usage{Interval: int64(interval)}
	if len(r.pids) == 0 {
		return u, false
	}
	longest := r.sumThreads(&u)
	idle := max(interval-longest, 0)
	if r.own {
		r.readOwn(&u, min(late, idle))
	} else if !r.readOthers(&u, interval, idle) {
		r.listed = time.Time{}
		return u, false
	}
	r.readGroups(&u)
	return u, true
}

// list lists the processes and threads of the engine and finds the control groups again.
func (r *linuxUsage) list() {
	r.listed = time.Now()
	pids := r.opt.Processes()
	if !slices.Equal(pids, r.pids) {
		r.forget(func(pid int) bool { return !slices.Contains(pids, pid) })
		r.groups = nil
	}
	if r.pids = pids; len(pids) == 0 {
		r.threads = nil
		return
	}
	if r.groups == nil {
		r.groups = cgroup.Of(r.root, pids[0], r.linux.read)
	}
	r.groups.Update()
	r.cores = r.available(pids[0], r.groups)
	var threads []*usedThread
	for _, pid := range pids {
		for _, id := range r.threadsOf(pid) {
			if i := slices.IndexFunc(r.threads, func(t *usedThread) bool { return t.pid == pid && t.id == id }); i >= 0 {
				threads = append(threads, r.threads[i])
				continue
			}
			threads = append(threads, &usedThread{
				pid: pid, id: id, file: fmt.Sprintf("proc/%d/task/%d/schedstat", pid, id),
				clock: int32(^id)<<3 | 6, // per thread, scheduler time: the kernel's posix-timers.h
			})
		}
	}
	r.threads = threads
}

// threadsOf lists the threads of the engine in a process.
func (r *linuxUsage) threadsOf(pid int) (ids []int) {
	if r.own && r.opt.EngineThreads != nil {
		ids = r.opt.EngineThreads()
		if r.only = len(ids) > 0; r.only {
			return ids
		}
	}
	ids, _ = r.threadIDs(pid) // none: it has ended
	return ids
}

// sumThreads sums the counters of the threads. It returns the longest time that one of them ran or waited for a core.
func (r *linuxUsage) sumThreads(u *event.Usage) (longest time.Duration) {
	var run, wait, cpu, ran uint64
	read := r.linux.read
	if len(r.threads) > maxOpenThreads {
		read = r.readOnce
	}
	known := false
	for _, t := range r.threads {
		raw, err := read(t.file)
		if err != nil {
			r.listed = time.Time{} // it has ended
			continue
		}
		now := usedThread{schedstat: parseSchedstat(raw)}
		if r.own {
			now.cpu = cpuTime(t.clock)
		}
		if t.known {
			known = true
			runs, waits := now.run-min(t.run, now.run), now.wait-min(t.wait, now.wait)
			run, wait, cpu = run+runs, wait+waits, cpu+now.cpu-min(t.cpu, now.cpu)
			longest = max(longest, time.Duration(runs+waits))
			if now.times != t.times || runs > 0 {
				ran++
			}
		}
		t.schedstat, t.cpu, t.known = now.schedstat, now.cpu, true
	}
	if !known {
		return 0
	}
	if r.own {
		run = cpu // unlike schedstat it includes the time since the last tick of the kernel
	}
	u.Running, u.Waiting, u.Threads = measured(float64(run)), measured(float64(wait)), measured(float64(ran))
	return longest
}

// cpuTime returns the time of a CPU clock, in ns; 0 if absent.
func cpuTime(clock int32) uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return uint64(t.Nano())
}

// readOwn reads what only this process reports about itself. held is how much of the delay of the sample no thread ran or
// waited for a core.
func (r *linuxUsage) readOwn(u *event.Usage, held time.Duration) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err == nil {
		u.Faults, u.Read = r.since("faults", 0, uint64(use.Majflt)), r.since("read", 0, 512*uint64(use.Inblock))
	}
	whole := r.since("cpu", 0, cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID))
	if whole.OK() && u.Running.OK() && r.only {
		u.Outside = event.DerivedValue(max(whole.V-u.Running.V, 0))
	}
	var p event.Process
	r.gc.read(&p)
	u.GCPause = p.GCPause
	u.Stopped = event.MeasuredValue(0)
	if held > 0 && r.continued(held) {
		u.Stopped = event.MeasuredValue(float64(held))
	}
}

// continued reports whether this process got SIGCONT since the last sample, which would explain that it was held up.
func (r *linuxUsage) continued(held time.Duration) bool {
	select {
	case <-r.resumed:
		return true
	default:
	}
	if held <= lateSample {
		return false
	}
	select {
	case <-r.resumed:
		return true
	case <-time.After(min(held, signalDelay)):
		return false
	}
}

// readOthers reads the engine's processes; false if none can be read. idle is the time in which no thread ran or waited
// for a core.
func (r *linuxUsage) readOthers(u *event.Usage, interval, idle time.Duration) (found bool) {
	var stopped time.Duration
	var cpu event.Reading
	for _, pid := range r.pids {
		dir := "proc/" + strconv.Itoa(pid) + "/"
		stat, err := r.linux.read(dir + "stat")
		p, ok := parseProcess(stat)
		if err != nil || !ok {
			continue
		}
		var read event.Reading
		if io, err := r.linux.read(dir + "io"); err != nil {
			read = readFailure(err)
		} else if n, ok := cgroup.Keyed(io, "read_bytes"); ok {
			read = r.since("read", pid, n)
		}
		was, is := r.stopped[pid], p.state == 'T' || p.state == 't'
		r.stopped[pid] = is
		switch {
		case was && is:
			stopped = max(stopped, interval)
		case was || is:
			stopped = max(stopped, idle)
		}
		faults, used := r.since("faults", pid, p.faults), r.since("cpu", pid, cpuTime(int32(^pid)<<3|2)) // per process, scheduler time
		if !found {
			u.Faults, u.Read, cpu, found = faults, read, used, true
			continue
		}
		u.Faults, u.Read, cpu = addReadings(u.Faults, faults), addReadings(u.Read, read), addReadings(cpu, used)
	}
	u.Stopped = event.DerivedValue(float64(stopped))
	if cpu.OK() && cpu.V > 0 { // unlike schedstat up to now
		u.Running = cpu
	}
	return found
}

// readGroups reads what the control groups account.
func (r *linuxUsage) readGroups(u *event.Usage) {
	g := r.groups
	u.Cores = r.cores
	if ns, ok := g.Throttled(); ok {
		u.Throttled = r.since("throttled", 0, ns)
	}
	if n, ok := g.LimitHits(); ok {
		u.LimitHits = r.since("hits", 0, n)
	}
	io, own, ok := g.Pressure("io")
	r.account(&u.Blocked, "blocked", io*1000, own, ok)
	memory, own, ok := g.Pressure("memory")
	r.account(&u.MemoryStall, "memory", memory*1000, own, ok)
	pages, own, ok := g.Refaults()
	r.account(&u.Reread, "reread", pages*uint64(os.Getpagesize()), own, ok)
	if u.Reread.OK() && u.Read.OK() { // the rest was that of others
		u.Reread.V = min(u.Reread.V, u.Read.V)
	}
}

// account sets a reading to the increase of a counter since the last sample: measured if it is the engine's own, derived
// if it is that of the machine. It leaves the reading absent if the counter could not be read.
func (r *linuxUsage) account(to *event.Reading, name string, now uint64, own, ok bool) {
	if !ok {
		return
	}
	if *to = r.since(name, 0, now); to.OK() && !own {
		to.Origin = event.Derived
	}
}

// counter identifies a counter of a process.
type counter struct {
	name string
	pid  int
}

// since returns the increase of a counter of a process since the last sample.
func (r *linuxUsage) since(name string, pid int, now uint64) event.Reading {
	k := counter{name, pid}
	before, known := r.counters[k]
	r.counters[k] = now
	if !known {
		return event.Absent(event.NotYet)
	}
	return measured(float64(now - min(before, now)))
}
