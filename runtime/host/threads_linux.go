package host

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/llmtop/llmtop/profiler/event"
)

// fewThreads is up to how many threads of another process have their context switches read at every sample: each costs some 10 µs. Of
// more they are read only while somebody looks closely.
const fewThreads = 64

// threadState is what the last sample saw of a thread.
type threadState struct {
	wait                   uint64 // ns that it was runnable without a core
	voluntary, involuntary uint64 // context switches
	switches               bool   // they were read
}

// processThreads adds up what the kernel tells of each thread alone: how long it waited for a core, and how often it gave one up or lost one.
func (l *linux) processThreads(p *event.Process, state *processState, dir string, seconds float64, closely bool) {
	entries, err := os.ReadDir(filepath.Join(l.root, dir, "task"))
	if err != nil {
		p.RunWait, p.Voluntary, p.Involuntary = why(err), why(err), why(err)
		return
	}
	own := p.PID == os.Getpid()
	closely = !own && (closely || len(entries) <= fewThreads)
	now := make(map[string]threadState, len(entries))
	var since threadState
	for _, e := range entries {
		t, ok := l.thread(filepath.Join(l.root, dir, "task", e.Name()), closely)
		if !ok {
			continue // it has just ended, or the kernel does not tell
		}
		if before, known := state.threads[e.Name()]; known {
			since.wait += t.wait - min(before.wait, t.wait)
			if t.switches && before.switches {
				since.voluntary += t.voluntary - min(before.voluntary, t.voluntary)
				since.involuntary += t.involuntary - min(before.involuntary, t.involuntary)
				since.switches = true
			}
		}
		now[e.Name()] = t
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

// thread reads what there is of one thread.
func (l *linux) thread(dir string, closely bool) (t threadState, ok bool) {
	raw, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	f := strings.Fields(string(raw))
	if err != nil || len(f) < 2 {
		return t, false
	}
	t.wait = number([]byte(f[1]))
	if closely {
		if status, err := os.ReadFile(filepath.Join(dir, "status")); err == nil {
			var known bool
			t.voluntary, t.switches = keyed(status, "voluntary_ctxt_switches")
			t.involuntary, known = keyed(status, "nonvoluntary_ctxt_switches")
			t.switches = t.switches && known
		}
	}
	return t, true
}

// ownSwitches are the context switches of llmtop itself, which the kernel adds up for it.
func (l *linux) ownSwitches(p *event.Process, state *processState, seconds float64) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return
	}
	voluntary, involuntary := uint64(use.Nvcsw), uint64(use.Nivcsw)
	p.Voluntary, p.Involuntary = per(voluntary, state.voluntary, seconds), per(involuntary, state.involuntary, seconds)
	state.voluntary, state.involuntary = voluntary, involuntary
}
