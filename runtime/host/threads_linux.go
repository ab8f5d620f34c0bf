package host

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// fewThreads is the maximum number of threads of another process whose context switches are read: each costs about 10 µs.
const fewThreads = 256

// threadTimes returns the name of the file with the times of a thread of the process whose folder is dir.
func threadTimes(dir string, thread int) string {
	return dir + "task/" + strconv.Itoa(thread) + "/schedstat"
}

// ownThread returns the name of the file with the counters of a thread of this process.
func ownThread(thread int) string { return "proc/self/task/" + strconv.Itoa(thread) + "/stat" }

// threadState holds the counters of a thread at the last sample.
type threadState struct {
	wait                   uint64 // ns that it was runnable but not running
	voluntary, involuntary uint64 // context switches
	switches               bool   // context switches were read
}

// threadIDs lists the threads of a process.
func (l *linux) threadIDs(pid int) (ids []int, err error) {
	entries, err := os.ReadDir(filepath.Join(l.root, "proc", strconv.Itoa(pid), "task"))
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// processThreads sums per-thread values of the kernel: the time waiting for a core, and voluntary and involuntary
// context switches.
func (l *linux) processThreads(p *event.Process, state *processState, dir string, seconds float64) {
	threads := slices.Collect(maps.Keys(state.threads))
	if !p.Threads.OK() || p.Threads.V != float64(len(threads)) { // some have begun or ended; state lacks those that could not be read
		var err error
		if threads, err = l.threadIDs(p.PID); err != nil {
			p.RunWait, p.Voluntary, p.Involuntary = readFailure(err), readFailure(err), readFailure(err)
			return
		}
	}
	own := p.PID == os.Getpid()
	closely := !own && len(threads) <= fewThreads
	read := l.readOnce
	if own { // few threads, which last
		read = l.read
	}
	now := make(map[int]threadState, len(threads))
	var since threadState
	for _, id := range threads {
		raw, err := read(threadTimes(dir, id))
		if err != nil {
			continue // it has just ended, or the kernel does not report it
		}
		t := threadState{wait: parseSchedstat(raw).wait}
		if closely {
			status, _ := l.readOnce(dir + "task/" + strconv.Itoa(id) + "/status") // none: it has just ended
			t.readSwitches(status)
		}
		if before, found := state.threads[id]; found {
			since.wait += t.wait - min(before.wait, t.wait)
			if t.switches && before.switches {
				since.voluntary += t.voluntary - min(before.voluntary, t.voluntary)
				since.involuntary += t.involuntary - min(before.involuntary, t.involuntary)
				since.switches = true
			}
		}
		now[id] = t
	}
	for id := range state.threads {
		if _, lives := now[id]; !lives {
			l.forgetFile(threadTimes(dir, id))
			if own {
				l.forgetFile(ownThread(id)) // see threads
			}
		}
	}
	state.threads = now
	p.RunWait = per(since.wait, 0, seconds*1e9)
	if len(now) == 0 {
		p.RunWait = event.Absent(event.NotReported)
	}
	switch {
	case own:
		l.ownSwitches(p, state, seconds)
	case since.switches:
		p.Voluntary, p.Involuntary = per(since.voluntary, 0, seconds), per(since.involuntary, 0, seconds)
	case closely:
		p.Voluntary, p.Involuntary = event.Absent(event.NotYet), event.Absent(event.NotYet)
	}
}

// readSwitches parses the context switches in the status of a thread.
func (t *threadState) readSwitches(status []byte) {
	var voluntary, involuntary bool
	t.voluntary, voluntary = cgroup.Keyed(status, "voluntary_ctxt_switches")
	t.involuntary, involuntary = cgroup.Keyed(status, "nonvoluntary_ctxt_switches")
	t.switches = voluntary && involuntary
}

// ownSwitches reads llmtop's own context switches, which the kernel reports as a sum.
func (l *linux) ownSwitches(p *event.Process, state *processState, seconds float64) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return
	}
	voluntary, involuntary := uint64(use.Nvcsw), uint64(use.Nivcsw)
	p.Voluntary, p.Involuntary = per(voluntary, state.voluntary, seconds), per(involuntary, state.involuntary, seconds)
	state.voluntary, state.involuntary = voluntary, involuntary
}
