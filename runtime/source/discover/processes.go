package discover

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// process is a process of a known program.
type process struct {
	pid          int
	ancestors    []int // nearest first, up to a limit
	program      *engine.Program
	args         []string // arguments after the program
	ports        []netip.AddrPort
	hidden       bool             // its ports are not readable
	likely       []netip.AddrPort // of these: its user listens at the port that it wants
	otherNetwork bool             // it runs in another network namespace
	runners      []process        // Ollama's llama-servers
}

// sight is the result of reading the machine's processes.
type sight struct {
	processes []process
	listening []netip.AddrPort // listening addresses of any process in this network namespace
	listened  bool             // listening was readable
	waiting   []waiting
	unread    int      // processes with unreadable command lines
	problems  []string // what else could not be read
}

// waiting is a listening address whose server starts when a client connects. It is not in sight.listening.
type waiting struct {
	at netip.AddrPort
	by string // systemd, or its unit
}

// notes describes what could not be read.
func (s *sight) notes() (notes []string) {
	if s.unread > 0 {
		notes = append(notes, metric.Plural(s.unread, "process")+" could not be read: not permitted")
	}
	hidden := 0
	for _, p := range s.processes {
		if p.hidden && !p.otherNetwork {
			hidden++
		}
	}
	if hidden > 0 {
		notes = append(notes, "the ports of "+metric.Plural(hidden, "process")+" could not be read (not permitted): tried usual ports and those on command lines")
	}
	return append(notes, s.problems...)
}

// engines groups processes: workers with their launcher, and llama-servers with their Ollama.
func (s *sight) engines() (out []process) {
	for _, p := range s.processes {
		if s.leader(&p) == nil && !s.startedByOllama(&p) {
			out = append(out, p)
		}
	}
	for _, p := range s.processes {
		if i := slices.IndexFunc(out, func(e process) bool { return slices.Contains(p.ancestors, e.pid) }); i >= 0 {
			out[i].take(p)
		}
	}
	return out
}

// leader returns the ancestor of p that is of the same kind, or nil.
func (s *sight) leader(p *process) *process {
	for i := range s.processes {
		if l := &s.processes[i]; l.program.Kind == p.program.Kind && slices.Contains(p.ancestors, l.pid) {
			return l
		}
	}
	return nil
}

// startedByOllama reports whether Ollama started p.
func (s *sight) startedByOllama(p *process) bool {
	return p.program.Kind == engine.Llama && slices.ContainsFunc(s.processes, func(l process) bool {
		return l.program.Kind == engine.Ollama && slices.Contains(p.ancestors, l.pid)
	})
}

// take adds a child process to the engine.
func (e *process) take(p process) {
	switch {
	case e.program.Kind == engine.Ollama && p.program.Kind == engine.Llama:
		e.runners = append(e.runners, p)
	case e.program.Kind == p.program.Kind:
		e.ports = append(e.ports, p.ports...)
		if e.program.ConfiguredPort(e.args) == 0 {
			e.args = append(e.args, p.args...)
		}
	}
}

// wantedPort returns the port on the command line, or else the usual one, or 0.
func (p *process) wantedPort() uint16 {
	return cmp.Or(p.program.ConfiguredPort(p.args), p.program.Port)
}

// maxPorts limits the ports of one process that are tried: engines open many internal ports.
const maxPorts = 6

// candidates returns the addresses at which to query an engine: its configured port, or else its usual one, or else all
// its ports.
func (s *sight) candidates(p *process) []netip.AddrPort {
	want := p.wantedPort()
	named := func(all []netip.AddrPort) []netip.AddrPort {
		i := slices.IndexFunc(all, func(a netip.AddrPort) bool { return a.Port() == want })
		if i < 0 {
			return nil
		}
		return all[i : i+1]
	}
	switch own := named(p.ports); {
	case p.otherNetwork:
		return nil
	case own != nil:
		return own
	case len(p.ports) > 0:
		return p.ports[:min(len(p.ports), maxPorts)]
	case !p.hidden:
		return nil
	case s.listened:
		return named(s.listening)
	case want == 0:
		return nil
	}
	return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), want)}
}
