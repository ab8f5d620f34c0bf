package discover

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// Identity is what a server has said that it is.
type Identity struct {
	Kind     identify.Kind // "" if its answers are not those of an engine
	Version  string
	Model    string
	Loading  bool
	NeedsKey bool
	Load     Load
	Progress Progress // what it has generated; nil: it does not tell
}

// Identify asks a server at http://HOST:PORT what it is, by requests that only read. Errors: nobody answers in time.
type Identify func(ctx context.Context, base string) (Identity, error)

// target is an address to ask, for the process that listens there.
type target struct {
	at     netip.AddrPort
	engine *engine // nil: a usual port
}

// targets are what is asked, and the engines that cannot be.
func targets(opt Options, s *sight) (out []target) {
	engines := s.engines()
	var taken []uint16
	for i := range engines {
		e := &engines[i]
		if e.program.kind == llmtop {
			for _, at := range e.ports {
				taken = append(taken, at.Port())
			}
			continue
		}
		at := s.candidates(&e.process)
		for _, a := range at {
			taken = append(taken, a.Port())
			out = append(out, target{reachable(a), e})
		}
		if len(at) == 0 {
			out = append(out, target{engine: e})
		}
		for _, r := range e.runners {
			for _, a := range r.ports {
				taken = append(taken, a.Port())
			}
		}
	}
	return append(out, usual(opt, s, taken)...)
}

// usual are the usual ports that are not those of a process that is known.
func usual(opt Options, s *sight, taken []uint16) (out []target) {
	ports := opt.Ports
	if ports == nil {
		ports = usualPorts()
	}
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, port := range ports {
		at := netip.AddrPortFrom(host, port)
		if s.listened {
			i := slices.IndexFunc(s.listening, func(a netip.AddrPort) bool {
				return a.Port() == port && (a.Addr().IsUnspecified() || a.Addr().IsLoopback())
			})
			if i < 0 {
				continue
			}
			at = reachable(s.listening[i])
		}
		if !slices.Contains(taken, port) {
			out = append(out, target{at: at})
		}
	}
	return out
}

// ask asks all of them at once.
func ask(ctx context.Context, opt Options, all []target) (found []Found) {
	answers := make([]*Found, len(all))
	var wait sync.WaitGroup
	for i, t := range all {
		wait.Go(func() { answers[i] = t.ask(ctx, opt.Identify) })
	}
	wait.Wait()
	for i, f := range answers {
		// Of the ports of one process only those count at which an engine answers, if there is one at all.
		if f == nil || f.State == Silent && slices.ContainsFunc(found, func(o Found) bool { return o.PID == f.PID }) {
			continue
		}
		if all[i].engine != nil {
			found = slices.DeleteFunc(found, func(o Found) bool { return o.PID == f.PID && o.State == Silent })
		}
		found = append(found, *f)
	}
	return found
}

// ask is what is known once the server has been asked, nil if there is no engine.
func (t target) ask(ctx context.Context, identify Identify) *Found {
	f := &Found{How: ByPort}
	if e := t.engine; e != nil {
		f.How, f.Kind, f.PID, f.Program, f.Model = ByProcess, e.program.kind, e.pid, e.program.name, e.program.model(e.args)
		for _, r := range e.runners {
			f.Runners = append(f.Runners, r.runner())
		}
		if !t.at.IsValid() {
			f.State, f.Why = e.unreachable()
			return f
		}
	}
	f.Address = "http://" + t.at.String()
	id, err := identify(ctx, f.Address)
	switch {
	case t.engine == nil && (err != nil || id.Kind == "" && !id.NeedsKey):
		return nil
	case err != nil:
		f.State, f.Why = Silent, err.Error()
		return f
	case id.Kind == "" && !id.NeedsKey:
		f.State, f.Why = Silent, "what answers is not understood"
		return f
	}
	f.identified(&id)
	return f
}

// identified takes what the server has said of itself.
func (f *Found) identified(id *Identity) {
	f.State, f.Version, f.Load, f.progress = Ready, id.Version, id.Load, id.Progress
	switch {
	case id.NeedsKey:
		f.State = NeedsKey
	case id.Loading:
		f.State = Loading
	}
	if id.Kind != "" && (f.Kind == "" || id.Kind != identify.OpenAI) {
		f.Kind = id.Kind
	}
	if id.Model != "" {
		f.Model = id.Model
	}
}

// unreachable says why a process has no address.
func (e *engine) unreachable() (State, string) {
	if e.apart {
		return Elsewhere, "it runs in a network of its own, as containers do: attach to the port that is published for it"
	}
	return Silent, "its process listens on no port"
}

// runner is one of Ollama's.
func (p *process) runner() Runner {
	r := Runner{PID: p.pid, Model: p.program.model(p.args)}
	switch told := p.told(); {
	case told != 0:
		r.Address = "http://" + netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), told).String()
	case len(p.ports) > 0:
		r.Address = "http://" + reachable(p.ports[0]).String()
	}
	return r
}

// published puts the process in a container together with the usual port at which its kind answers, where there is one of each: nothing
// else says which port leads to which container.
func published(found []Found) []Found {
	for i := range found {
		f := &found[i]
		if f.State != Elsewhere {
			continue
		}
		same := func(o Found) bool { return o.Kind == f.Kind && (o.State == Elsewhere || o.How == ByPort) }
		others := slices.DeleteFunc(slices.Clone(found), func(o Found) bool { return !same(o) })
		at := slices.IndexFunc(found, func(o Found) bool { return same(o) && o.How == ByPort })
		if len(others) == 2 && at >= 0 {
			found[at].PID, found[at].Program, found[at].Runners = f.PID, f.Program, f.Runners
			return published(slices.Delete(found, i, i+1))
		}
	}
	return found
}
