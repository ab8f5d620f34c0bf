//go:build !linux

package host

import (
	"maps"
	"os"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/llmtop/llmtop/profiler/event"
)

// portable reads the values that gopsutil reports on other systems.
type portable struct {
	cores []cpu.TimesStat
	procs map[int]*portableProcess
}

type portableProcess struct {
	p            *process.Process
	cpu          float64
	io           process.IOCountersStat
	peak         float64
	sampled, io0 bool
}

func newSystem() system { return &portable{procs: map[int]*portableProcess{}} }

func (*portable) close() {}

func (*portable) threads([]int) event.Reading { return event.Absent(event.NotReported) }

func (*portable) parents() map[int]int {
	all := make(map[int]int)
	list, err := process.Processes()
	if err != nil {
		return nil
	}
	for _, p := range list {
		if parent, err := p.Ppid(); err == nil {
			all[int(p.Pid)] = int(parent)
		}
	}
	return all
}

func (s *portable) forget(gone func(pid int) bool) {
	maps.DeleteFunc(s.procs, func(pid int, _ *portableProcess) bool { return gone(pid) })
}

func (s *portable) machine(h *event.Host, since time.Duration) {
	h.CPU, h.Frequency, h.Load1 = event.Absent(event.NotYet), event.Absent(event.NotReported), event.Absent(event.NotReported)
	if times, err := cpu.Times(true); err != nil {
		h.CPU = event.Absent(event.NotReported)
	} else {
		s.usage(h, times)
	}
	if l, err := load.Avg(); err == nil {
		h.Load1 = measured(l.Load1)
	}
}

// limits sets the memory of the machine. Only Linux has control groups.
func (*portable) limits(h *event.Host, _ int, _ time.Duration) {
	h.MemTotal, h.MemUsed = event.Reading{}, event.Reading{}
	if v, err := mem.VirtualMemory(); err == nil {
		h.MemTotal, h.MemUsed = measured(float64(v.Total)), measured(float64(v.Total-v.Available))
	}
}

// usage computes how busy each core was since the last call.
func (s *portable) usage(h *event.Host, times []cpu.TimesStat) {
	if len(times) == len(s.cores) {
		var sum float64
		for i, t := range times {
			b := s.cores[i]
			idle := t.Idle + t.Iowait - b.Idle - b.Iowait
			busy := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal - b.User - b.System - b.Nice - b.Irq - b.Softirq - b.Steal
			share := 0.0
			if busy+idle > 0 {
				share = min(max(busy/(busy+idle), 0), 1)
			}
			h.Cores = append(h.Cores, share)
			sum += share
		}
		h.CPU = measured(sum / float64(len(times)))
	}
	s.cores = times
}

func (s *portable) process(pid int, since time.Duration) event.Process {
	absent := event.Absent(event.NotReported)
	out := event.Process{
		PID: pid, CPU: absent, RunWait: absent, RSS: absent, Peak: absent, Read: absent, Write: absent, ReadOps: absent,
		WriteOps: absent, ReadSum: absent, WriteSum: absent, Faults: absent, Threads: absent,
	}
	state := s.procs[pid]
	if state == nil {
		p, err := process.NewProcess(int32(pid))
		if err != nil {
			return out
		}
		state = &portableProcess{p: p}
		s.procs[pid] = state
	}
	seconds := since.Seconds()
	if t, err := state.p.Times(); err == nil {
		used := t.User + t.System
		out.CPU = event.Absent(event.NotYet)
		if seconds > 0 && state.sampled {
			out.CPU = measured(max(used-state.cpu, 0) / seconds)
		}
		state.cpu, state.sampled = used, true
	}
	if m, err := state.p.MemoryInfo(); err == nil {
		state.peak = max(state.peak, float64(m.RSS))
		out.RSS, out.Peak = measured(float64(m.RSS)), event.DerivedValue(state.peak)
	}
	if io, err := state.p.IOCounters(); err == nil {
		if !state.io0 {
			seconds = 0
		}
		out.Read, out.Write = per(io.ReadBytes, state.io.ReadBytes, seconds), per(io.WriteBytes, state.io.WriteBytes, seconds)
		out.ReadOps, out.WriteOps = per(io.ReadCount, state.io.ReadCount, seconds), per(io.WriteCount, state.io.WriteCount, seconds)
		out.ReadSum, out.WriteSum = measured(float64(io.ReadBytes)), measured(float64(io.WriteBytes))
		state.io, state.io0 = *io, true
	} else if os.IsPermission(err) {
		denied := event.Absent(event.NotPermitted)
		out.Read, out.Write, out.ReadOps, out.WriteOps, out.ReadSum, out.WriteSum = denied, denied, denied, denied, denied, denied
	}
	if n, err := state.p.NumThreads(); err == nil {
		out.Threads = measured(float64(n))
	}
	return out
}
