// Package discover finds the inference engines on this machine: by the command lines of processes and the ports they
// listen on, by the usual ports of engines, and by the event sockets in the well-known folder. It identifies what
// listens with read-only requests, which make no engine compute and carry no key.
package discover

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// Found is an engine, or something that may be one.
type Found struct {
	Kind    engine.Kind // from its answers, or else its command line; "": unknown
	Version string      // "": not reported
	Model   string      // "": not reported
	Address string      // address for attach: unix:PATH, tcp:HOST:PORT or http://HOST:PORT; "": not reachable
	Other   string      // another address of the same process, usually ""
	PID     int         // 0: unknown
	Program string      // name of the program from its command line; "": unknown
	How     How
	State   State
	Why     string // reason of State, unless obvious
	Load    engine.Load
	Runners []Runner // worker processes
	Probes  Probes

	tokens map[string]float64 // generated, by request; nil: not reported
	closed bool               // no inference server: only probes can watch it
}

// Runner is a llama-server that Ollama started for a model. It reports more about the model than Ollama.
type Runner struct {
	PID     int
	Address string // http://HOST:PORT
	Model   string // file name of the model
	Probes  Probes
}

// Probes is whether a process can be watched by probes, token by token. They need root. It is zero for a process that
// does not link llama.cpp.
type Probes struct {
	Address string // for attach: pid:PID; "": they cannot
	Why     string // why not, or why it is unknown
}

// How is the way an engine was found.
type How uint8

const (
	BySocket  How = iota // by its event socket
	ByProcess            // by its process, and the port that it listens on
	ByPort               // by a usual port
)

var howNames = [...]string{"event socket", "process", "usual port"}

// String returns the name shown on screens.
func (h How) String() string { return howNames[h] }

// State is whether an engine can be watched.
type State uint8

const (
	Ready     State = iota
	Loading         // answers, but has no model yet
	NeedsKey        // needs an API key or a token
	Silent          // the process runs, but does not answer in time, or not like an engine
	Elsewhere       // the process runs in its own network, such as a container's
	NeedsRoot       // only probes can watch it
)

var stateNames = [...]string{"ready", "loading", "needs a key", "does not answer", "not reachable", "needs root"}

// String returns the name shown on screens.
func (s State) String() string { return stateNames[s] }

// Known reports whether this is certainly an engine: any server may answer 401 at a usual port.
func (f *Found) Known() bool { return f.Kind != "" }

// Attachable reports whether attach can watch it now, given a key if it needs one.
func (f *Found) Attachable() bool {
	return f.Known() && f.Address != "" && (f.State == Ready || f.State == Loading || f.State == NeedsKey)
}

// Result is the result of one search.
type Result struct {
	Engines []Found
	Notes   []string // what could not be read, one sentence each
	Took    time.Duration
}

// Options configure a search.
type Options struct {
	NoSockets bool          // skip event sockets
	NoServers bool          // skip processes and usual ports
	Root      string        // parent of proc; "": "/". Linux only
	Ports     []uint16      // usual ports to try; nil: those of all supported engines
	Within    time.Duration // time limit for identifying servers; 0: 220 ms

	identify func(ctx context.Context, base string, awake bool) (Found, error) // nil: Watch.identify
	inspect  func(pid int) (model string, err error)                           // nil: Watch.inspect, unless Root is set
}

// within is the default time limit for identifying servers. With the rest of the search it stays below 300 ms.
const within = 220 * time.Millisecond

// Find searches the machine. It takes as long as the slowest server, at most Options.Within, or the slowest event socket,
// at most a second since a busy machine makes an engine answer late, plus the time to read processes. The notes list
// what could not be read.
func Find(ctx context.Context, opt Options) Result { return (&Watch{Options: opt}).search(ctx) }

func (w *Watch) search(ctx context.Context) (r Result) {
	began, opt := time.Now(), w.Options
	if opt.Within <= 0 {
		opt.Within = within
	}
	if opt.identify == nil {
		opt.identify = w.identify
	}
	if opt.inspect == nil && opt.Root == "" {
		opt.inspect = w.inspect
	}
	var (
		sockets  []Found
		notes    []string
		searched sync.WaitGroup
	)
	searched.Go(func() { sockets, notes = findSockets(ctx, opt) })
	if !opt.NoServers {
		ctx, cancel := context.WithTimeout(ctx, opt.Within)
		defer cancel()
		seen := look(opt.Root)
		r.Notes = append(seen.notes(), opt.unasked(&seen)...)
		r.Engines = published(ask(ctx, opt, targets(opt, &seen)))
		r.Engines = opt.inspectAll(r.Engines)
	}
	searched.Wait()
	r.Engines, r.Notes = merge(sockets, r.Engines), append(r.Notes, notes...)
	slices.SortStableFunc(r.Engines, inOrder)
	r.Took = time.Since(began)
	return r
}

// merge combines engines found by event socket with servers of the same process.
func merge(sockets, servers []Found) []Found {
	for _, f := range servers {
		i := slices.IndexFunc(sockets, func(s Found) bool { return s.PID != 0 && s.PID == f.PID })
		if i < 0 {
			sockets = append(sockets, f)
			continue
		}
		s := &sockets[i]
		s.Other, s.Program, s.Runners, s.Probes = f.Address, f.Program, f.Runners, f.Probes
		if s.Model == "" {
			s.Model = f.Model
		}
	}
	return sockets
}

// inOrder orders results: engines that can be watched first, then by kind and address.
func inOrder(a, b Found) int {
	rank := func(f *Found) int {
		switch {
		case !f.Known():
			return 3
		case f.State == Silent, f.State == Elsewhere:
			return 2
		case f.State == NeedsKey, f.State == NeedsRoot:
			return 1
		}
		return 0
	}
	if d := rank(&a) - rank(&b); d != 0 {
		return d
	}
	if d := strings.Compare(strings.ToLower(string(a.Kind)), strings.ToLower(string(b.Kind))); d != 0 {
		return d
	}
	return strings.Compare(a.Address, b.Address)
}
