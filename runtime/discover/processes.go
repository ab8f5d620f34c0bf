package discover

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// process is one whose command line is that of a known program.
type process struct {
	pid       int
	ancestors []int // nearest first, some of them
	program   *program
	args      []string // what follows the program
	ports     []netip.AddrPort
	hidden    bool // on which ports it listens may not be read
	apart     bool // its network is not that of this process
}

// sight is what was seen of the machine's processes.
type sight struct {
	processes []process
	listening []netip.AddrPort // on which anything listens in this network
	listened  bool             // listening is known
	unread    int              // processes whose command lines may not be read
	trouble   []string         // what else could not be looked at
}

// notes say what could not be looked at.
func (s *sight) notes() (notes []string) {
	if s.unread > 0 {
		notes = append(notes, plural(s.unread, "process", "processes")+" could not be read: not permitted")
	}
	hidden := 0
	for _, p := range s.processes {
		if p.hidden && !p.apart {
			hidden++
		}
	}
	if hidden > 0 {
		notes = append(notes, "the ports of "+plural(hidden, "process", "processes")+" could not be read (not permitted): usual ones and those of the command line were tried")
	}
	return append(notes, s.trouble...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// engine is a process with those that it has started for the same purpose.
type engine struct {
	process
	runners []process // Ollama's
}

// engines puts processes together: workers with their launcher, and Ollama's llama-servers with it.
func (s *sight) engines() []engine {
	var out []engine
	for _, p := range s.processes {
		if s.leader(&p) == nil && !s.ollamas(&p) {
			out = append(out, engine{process: p})
		}
	}
	for _, p := range s.processes {
		if i := slices.IndexFunc(out, func(e engine) bool { return slices.Contains(p.ancestors, e.pid) }); i >= 0 {
			out[i].take(p)
		}
	}
	return out
}

// leader is the process that has started p for the same purpose, nil if none has.
func (s *sight) leader(p *process) *process {
	for i := range s.processes {
		if l := &s.processes[i]; l.program.kind == p.program.kind && slices.Contains(p.ancestors, l.pid) {
			return l
		}
	}
	return nil
}

// ollamas reports whether Ollama has started p.
func (s *sight) ollamas(p *process) bool {
	return p.program.kind == identify.Llama && slices.ContainsFunc(s.processes, func(l process) bool {
		return l.program.kind == identify.Ollama && slices.Contains(p.ancestors, l.pid)
	})
}

// take adds a process that the engine has started.
func (e *engine) take(p process) {
	switch {
	case e.program.kind == identify.Ollama && p.program.kind == identify.Llama:
		e.runners = append(e.runners, p)
	case e.program.kind == p.program.kind:
		e.ports = append(e.ports, p.ports...)
		if e.told() == 0 {
			e.args = append(e.args, p.args...)
		}
	}
}

// told is the port that the command line names, 0 if none.
func (p *process) told() uint16 { return p.program.told(p.args) }

// most is how many ports of one process are asked: engines listen on many among themselves.
const most = 6

// candidates are the addresses at which an engine may be asked: the port that it was told, or else its usual one, or else whatever it
// listens on.
func (s *sight) candidates(p *process) []netip.AddrPort {
	want := p.told()
	if want == 0 {
		want = p.program.port
	}
	named := func(all []netip.AddrPort) []netip.AddrPort {
		i := slices.IndexFunc(all, func(a netip.AddrPort) bool { return a.Port() == want })
		if i < 0 {
			return nil
		}
		return all[i : i+1]
	}
	switch own := named(p.ports); {
	case p.apart:
		return nil
	case own != nil:
		return own
	case len(p.ports) > 0:
		return p.ports[:min(len(p.ports), most)]
	case !p.hidden:
		return nil
	case s.listened:
		return named(s.listening)
	case want == 0:
		return nil
	}
	return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), want)}
}
