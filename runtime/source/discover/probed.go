package discover

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/probe"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// inspectAll finds out which of the engines probes can watch, and returns the engines. One that nothing else can watch
// gets the address for them. Engines that are certainly not llama.cpp are not inspected: their libraries are large.
func (opt *Options) inspectAll(engines []Found) []Found {
	var inspected sync.WaitGroup
	for i := range engines {
		f := &engines[i]
		if f.PID != 0 && engine.Of(f.Kind).LinksLlama {
			inspected.Go(func() { f.Probes = opt.probes(f.PID, &f.Model) })
		}
		for j := range f.Runners {
			r := &f.Runners[j]
			inspected.Go(func() { r.Probes = opt.probes(r.PID, &r.Model) })
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
func (opt *Options) probes(pid int, model *string) Probes {
	if opt.inspect == nil {
		return Probes{}
	}
	path, err := opt.inspect(pid)
	switch {
	case err == nil:
		*model = cmp.Or(*model, engine.FileName(path))
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
	By      string `json:"by"`      // "socket", "HTTP" or "probes"
	Address string `json:"address"` // for attach
	Root    bool   `json:"needs_root"`
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

// inspect returns the path of a process's model, "" if it is unknown, if probes can watch that process. It fails with
// probe.ErrAbsent if the process does not link llama.cpp, and with os.ErrPermission if that cannot be read. It reads the
// files of a process that links llama.cpp only once.
func (w *Watch) inspect(pid int) (model string, err error) {
	process := host.Identify(pid)
	w.mu.Lock()
	model, known := w.models[process]
	w.mu.Unlock()
	if known {
		return model, probe.Permitted()
	}
	t, err := probe.Inspect(pid)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.models == nil {
		w.models = map[host.ID]string{}
	}
	w.models[process] = t.Model
	return t.Model, probe.Permitted()
}
