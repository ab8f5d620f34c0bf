//go:build !linux

package discover

import (
	"net/netip"
	goruntime "runtime"
	"slices"

	"github.com/shirou/gopsutil/v4/net"
	processes "github.com/shirou/gopsutil/v4/process"

	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// Listens reports whether a program listens at a port of this machine. On this system that is not certain.
func Listens(string, uint16) bool { return false }

// look reads processes with gopsutil. Only Windows reports which process listens on which port without running another
// program; on other systems usual ports and those on command lines are tried.
func look(string) (s sight) {
	all, err := processes.Processes()
	if err != nil {
		s.problems = append(s.problems, "cannot list processes: "+err.Error())
	}
	owned := map[int][]netip.AddrPort{}
	if goruntime.GOOS == "windows" {
		owned = s.listeners()
	} else {
		s.problems = append(s.problems, "this system does not report the ports of processes: tried usual ports and those on command lines")
	}
	for _, one := range all {
		args, err := one.CmdlineSlice()
		if err != nil {
			s.unread++
			continue
		}
		p, rest := engine.Recognise(args)
		if p == nil {
			continue
		}
		pid := int(one.Pid)
		found := process{pid: pid, program: p, args: rest, ports: owned[pid], hidden: !s.listened}
		if parent, err := one.Ppid(); err == nil && parent > 1 {
			found.ancestors = []int{int(parent)}
		}
		s.processes = append(s.processes, found)
	}
	return s
}

// listeners returns the listening ports of each process.
func (s *sight) listeners() map[int][]netip.AddrPort {
	owned := map[int][]netip.AddrPort{}
	connections, err := net.Connections("tcp")
	if err != nil {
		s.problems = append(s.problems, "cannot list ports: "+err.Error())
		return owned
	}
	s.listened = true
	for _, c := range connections {
		addr, err := netip.ParseAddr(c.Laddr.IP)
		if c.Status != "LISTEN" || err != nil {
			continue
		}
		at := netip.AddrPortFrom(addr.Unmap(), uint16(c.Laddr.Port))
		s.listening = append(s.listening, at)
		if pid := int(c.Pid); !slices.Contains(owned[pid], at) {
			owned[pid] = append(owned[pid], at)
		}
	}
	return owned
}
