package discover

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// target is an address to query, and the process that listens there.
type target struct {
	at      netip.AddrPort
	process *process // nil: a usual port without a known process
}

// targets returns the addresses to query, and the processes without one.
func targets(opt Options, s *sight) (out []target) {
	engines := s.engines()
	var taken []uint16
	for i := range engines {
		e := &engines[i]
		if e.program.Kind == engine.LLMTop {
			for _, at := range e.ports {
				taken = append(taken, at.Port())
			}
			continue
		}
		var at []netip.AddrPort
		if !e.program.Closed {
			at = s.candidates(e)
		}
		for _, a := range at {
			taken = append(taken, a.Port())
			out = append(out, target{reachable(a), e})
		}
		if len(at) == 0 {
			out = append(out, target{process: e})
		}
		for _, r := range e.runners {
			for _, a := range r.ports {
				taken = append(taken, a.Port())
			}
		}
		if e.program.Closed {
			for _, a := range e.ports {
				taken = append(taken, a.Port())
			}
		}
	}
	return append(out, usual(opt, s, taken)...)
}

// ports returns the usual ports to try.
func (opt *Options) ports() []uint16 {
	if opt.Ports != nil {
		return opt.Ports
	}
	return engine.UsualPorts()
}

// unasked returns a note for each usual port that is not asked, because a connection would start a server.
func (opt *Options) unasked(s *sight) (notes []string) {
	for _, w := range s.waiting {
		if slices.Contains(opt.ports(), w.at.Port()) {
			notes = append(notes, "did not ask "+reachable(w.at).String()+": "+w.by+" starts a server when a client connects")
		}
	}
	return notes
}

// usual returns the usual ports in use by no known process.
func usual(opt Options, s *sight, taken []uint16) (out []target) {
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, port := range opt.ports() {
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

// ask queries all targets concurrently.
func ask(ctx context.Context, opt Options, all []target) (found []Found) {
	answers := make([]*Found, len(all))
	var wait sync.WaitGroup
	for i, t := range all {
		wait.Go(func() { answers[i] = t.ask(ctx, &opt) })
	}
	wait.Wait()
	for i, f := range answers {
		// Of a process's ports that do not answer like an engine, keep one, and only if no other port does.
		if f == nil || f.State == Silent && slices.ContainsFunc(found, func(o Found) bool { return o.PID == f.PID }) {
			continue
		}
		if all[i].process != nil {
			found = slices.DeleteFunc(found, func(o Found) bool { return o.PID == f.PID && o.State == Silent })
		}
		found = append(found, *f)
	}
	return found
}

// ask queries the server and returns the engine, or nil if absent.
func (t target) ask(ctx context.Context, opt *Options) *Found {
	f := &Found{How: ByPort}
	if e := t.process; e != nil {
		f.How, f.Kind, f.PID, f.Program, f.Model = ByProcess, e.program.Kind, e.pid, e.program.Name, e.program.Model(e.args)
		for _, r := range e.runners {
			f.Runners = append(f.Runners, r.runner())
		}
		if f.closed = e.program.Closed; f.closed {
			f.State = Elsewhere
			return f
		}
		if !t.at.IsValid() {
			f.State, f.Why = e.unreachable()
			return f
		}
	}
	f.Address = "http://" + t.at.String()
	id, err := opt.identify(ctx, f.Address, t.process != nil && t.process.neverSleeps(opt.Root))
	unknown := id.Kind == "" && id.State != NeedsKey
	switch {
	case t.process == nil && (err != nil || unknown):
		return nil
	case err != nil:
		f.State, f.Why = Silent, err.Error()
		return f
	case unknown:
		f.State, f.Why = Silent, "unknown answer"
		return f
	}
	f.State, f.Version, f.Load, f.tokens = id.State, id.Version, id.Load, id.tokens
	if id.Kind != "" && (f.Kind == "" || id.Kind != engine.OpenAI) {
		f.Kind = id.Kind
	}
	f.Model = cmp.Or(id.Model, f.Model)
	return f
}

// unreachable returns why a process has no address.
func (p *process) unreachable() (State, string) {
	if p.otherNetwork {
		return Elsewhere, "runs in its own network, such as a container's: attach to its published port"
	}
	return Silent, "process listens on no port"
}

// runner describes a process started by Ollama.
func (p *process) runner() Runner {
	r := Runner{PID: p.pid, Model: p.program.Model(p.args)}
	switch port := p.program.ConfiguredPort(p.args); {
	case port != 0:
		r.Address = "http://" + netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()
	case len(p.ports) > 0:
		r.Address = "http://" + reachable(p.ports[0]).String()
	}
	return r
}

// published merges a process in a container with the usual port that answers as the same kind, if there is exactly one
// of each: nothing else shows which port leads to which container.
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
