// Package discover finds the inference engines that run on this machine: by the command lines of processes and the ports on which those
// listen, by the usual ports of engines, and by the event sockets of the well-known folder. What listens is asked what it is, with requests
// that only read; no request makes an engine compute, and no key is ever sent.
package discover

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// Found is an engine, or what may be one.
type Found struct {
	Kind    identify.Kind // as its answers say, or else its command line; "" unknown
	Version string        // "" if it does not tell
	Model   string        // likewise
	Address string        // what attach takes: unix:PATH, tcp:HOST:PORT or http://HOST:PORT; "" if there is none to be reached at
	Other   string        // another address at which the same process answers, "" mostly
	PID     int           // 0 unknown
	Program string        // what its command line begins with, "" unknown
	How     How
	State   State
	Why     string // why State is what it is, where that is not plain
	Load    Load
	Runners []Runner // processes that do the work for it

	progress Progress // what it has generated; nil: it does not tell
}

// Load is what an engine does at the moment, as far as it tells without being asked for much.
type Load struct {
	Running event.Reading // requests
	Waiting event.Reading // requests
	Decode  event.Reading // tokens/s
}

// Runner is a llama-server that Ollama has started for a model, which tells more of it than Ollama does.
type Runner struct {
	PID     int
	Address string // http://HOST:PORT
	Model   string // file of the model
}

// How says by what an engine was found.
type How uint8

// The ways.
const (
	BySocket  How = iota // its event socket
	ByProcess            // its process, and the port on which that listens
	ByPort               // its usual port
)

var howNames = [...]string{"event socket", "process", "usual port"}

// String names the way.
func (h How) String() string { return howNames[h] }

// State is whether an engine can be watched.
type State uint8

// The states.
const (
	Ready     State = iota
	Loading         // it answers, and has no model yet
	NeedsKey        // it wants an API key or a token
	Silent          // its process runs; nothing at its address answers in time or in a way that is understood
	Elsewhere       // its process runs in a network of its own, such as a container's
)

var stateNames = [...]string{"ready", "loading", "needs a key", "does not answer", "not reachable"}

// String names the state.
func (s State) String() string { return stateNames[s] }

// Known reports whether this is an engine for sure: a 401 at a usual port may be anything's.
func (f *Found) Known() bool { return f.Kind != "" }

// Attachable reports whether attach can watch it as things are, given a key where it needs one.
func (f *Found) Attachable() bool {
	return f.Known() && f.Address != "" && (f.State == Ready || f.State == Loading || f.State == NeedsKey)
}

// Result is what a look at the machine has found.
type Result struct {
	Engines []Found
	Notes   []string // what could not be looked at, a sentence each
	Took    time.Duration
}

// Options say where to look.
type Options struct {
	NoSockets bool          // leave out event sockets
	NoServers bool          // leave out processes and usual ports
	Root      string        // of /proc; "" is "/". Linux only
	Ports     []uint16      // usual ones; nil are those of the engines that are known
	Identify  Identify      // nil: Fingerprint
	Within    time.Duration // for what listens to say what it is; 0: 220 ms
}

// within is how long the servers of a machine have to say what they are: with the rest of the look, it stays below 300 ms.
const within = 220 * time.Millisecond

// Find looks at the machine. It takes as long as the slowest server that is asked, at most Options.Within besides reading processes.
// What cannot be looked at is told in the notes.
func Find(ctx context.Context, opt Options) Result {
	began := time.Now()
	if opt.Within <= 0 {
		opt.Within = within
	}
	if opt.Identify == nil {
		opt.Identify = Fingerprint
	}
	ctx, cancel := context.WithTimeout(ctx, opt.Within)
	defer cancel()
	var r Result
	sockets := make(chan []Found, 1)
	go func() { sockets <- findSockets(ctx, opt) }()
	if !opt.NoServers {
		seen := look(opt.Root)
		r.Notes = seen.notes()
		r.Engines = published(ask(ctx, opt, targets(opt, &seen)))
	}
	r.Engines = merge(<-sockets, r.Engines)
	slices.SortStableFunc(r.Engines, inOrder)
	r.Took = time.Since(began)
	return r
}

// merge puts together what the event sockets and the servers have told of the same processes.
func merge(sockets, servers []Found) []Found {
	for _, f := range servers {
		i := slices.IndexFunc(sockets, func(s Found) bool { return s.PID != 0 && s.PID == f.PID })
		if i < 0 {
			sockets = append(sockets, f)
			continue
		}
		s := &sockets[i]
		s.Other, s.Program, s.Runners = f.Address, f.Program, f.Runners
		if s.Model == "" {
			s.Model = f.Model
		}
	}
	return sockets
}

// inOrder is the order of the list: what can be watched first, then by kind and address.
func inOrder(a, b Found) int {
	rank := func(f *Found) int {
		switch {
		case !f.Known():
			return 3
		case f.State == Silent, f.State == Elsewhere:
			return 2
		case f.State == NeedsKey:
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
