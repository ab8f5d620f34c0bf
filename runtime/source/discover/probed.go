package discover

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/llmtop/llmtop/runtime/source/probe"
)

// Inspect returns the path of a process's model, "" if it is unknown, if probes can watch that process. It fails with
// probe.ErrAbsent if the process does not link llama.cpp, and with os.ErrPermission if that cannot be read.
type Inspect func(pid int) (model string, err error)

func inspect(pid int) (model string, err error) {
	model, err = modelFile(pid)
	if err != nil {
		return "", err
	}
	return model, probe.Permitted()
}

func modelFile(pid int) (string, error) {
	t, err := probe.Inspect(pid)
	if err != nil {
		return "", err
	}
	return t.Model, nil
}

// inspectAll finds out which of the engines probes can watch, and returns the engines. One that nothing else can watch
// gets the address for them. Engines that are certainly not llama.cpp are not inspected: their libraries are large.
func (opt *Options) inspectAll(engines []Found) []Found {
	look := opt.Inspect
	if look == nil && opt.Root == "" {
		look = inspect
	}
	var inspected sync.WaitGroup
	for i := range engines {
		f := &engines[i]
		if f.PID != 0 && slices.Contains(linksLlama, f.Kind) {
			inspected.Go(func() { f.Probes = probes(look, f.PID, &f.Model) })
		}
		for j := range f.Runners {
			r := &f.Runners[j]
			inspected.Go(func() { r.Probes = probes(look, r.PID, &r.Model) })
		}
	}
	inspected.Wait()
	for i := range engines {
		f := &engines[i]
		switch reached := f.State != Silent && f.State != Elsewhere; {
		case !reached && f.Probes.Address != "" && Privileged():
			f.Address, f.State, f.Why = f.Probes.Address, Ready, ""
		case !reached && f.Probes.Address != "":
			f.Address, f.State, f.Why = f.Probes.Address, NeedsRoot, ""
		case f.closed:
			f.Why = f.Probes.Why
		}
	}
	return slices.DeleteFunc(engines, func(f Found) bool { return f.closed && f.Probes == Probes{} })
}

// probes returns whether probes can watch a process, and sets the name of its model if it is empty.
func probes(look Inspect, pid int, model *string) Probes {
	if look == nil {
		return Probes{}
	}
	path, err := look(pid)
	switch {
	case err == nil:
		*model = cmp.Or(*model, fileName(path))
		return Probes{Address: "pid:" + strconv.Itoa(pid)}
	case errors.Is(err, os.ErrPermission):
		return Probes{Why: fmt.Sprintf("needs root to look into process %d", pid)}
	case errors.Is(err, probe.ErrAbsent):
		return Probes{}
	}
	return Probes{Why: err.Error()}
}

// Privileged reports whether this process may attach probes.
func Privileged() bool { return os.Geteuid() == 0 }

// Way is a way to watch an engine.
type Way struct {
	By      string // "socket", "HTTP" or "probes"
	Address string // for attach
	Root    bool   // needs root
}

// Ways returns how an engine can be watched.
func (f *Found) Ways() (ways []Way) {
	for _, at := range []string{f.Address, f.Other} {
		switch {
		case at == "" || at == f.Probes.Address:
		case at == f.Address && f.How == BySocket:
			ways = append(ways, Way{By: "socket", Address: at})
		default:
			ways = append(ways, Way{By: "HTTP", Address: at})
		}
	}
	return append(ways, f.Probes.ways()...)
}

// Ways returns how a runner can be watched.
func (r *Runner) Ways() (ways []Way) {
	if r.Address != "" {
		ways = append(ways, Way{By: "HTTP", Address: r.Address})
	}
	return append(ways, r.Probes.ways()...)
}

func (p Probes) ways() []Way {
	if p.Address == "" {
		return nil
	}
	return []Way{{By: "probes", Address: p.Address, Root: true}}
}

// Best returns the address at which most of an engine can be seen with this process's privileges.
func (f *Found) Best() string {
	if f.How != BySocket && f.Probes.Address != "" && Privileged() {
		return f.Probes.Address
	}
	return f.Address
}

// inspector remembers which processes link llama.cpp.
type inspector struct {
	mu    sync.Mutex // guards known
	known map[inspected]string
}

// inspected is a process: a number and its start.
type inspected struct {
	pid   int
	start uint64
}

// inspect is like the function, but reads the files of a process that links llama.cpp only once.
func (n *inspector) inspect(pid int) (model string, err error) {
	start, err := probe.Started(pid)
	if err != nil {
		return "", err
	}
	p := inspected{pid, start}
	n.mu.Lock()
	model, known := n.known[p]
	n.mu.Unlock()
	if known {
		return model, probe.Permitted()
	}
	if model, err = modelFile(pid); err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[inspected]string{}
	}
	n.known[p] = model
	return model, probe.Permitted()
}
