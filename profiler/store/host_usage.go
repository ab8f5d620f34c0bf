package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// HostUsage is the use of a machine over all samples of the session.
type HostUsage struct {
	Nanos                               int64 // ns that the samples cover
	Cores                               int
	CPU, Frequency, Memory, MemoryTotal Sum // units as in event.Host
	Engine, Self                        ProcessUsage
	GPUs                                []GPUUsage

	until event.Time // of the last sample
}

// ProcessUsage is the use of a machine by one process.
type ProcessUsage struct{ CPU, RSS, Peak, Read, Write, ReadOps, WriteOps Sum }

// GPUUsage is the use of one GPU.
type GPUUsage struct {
	Name                string
	Util, Power, Memory Sum
}

// Sum accumulates a reading: its integral over the time in which it was available, and its peak.
type Sum struct {
	total, time, peak float64
	seen              bool
	absence           event.Reading // reason of the last absent reading
}

// add adds a reading for an interval of ns.
func (s *Sum) add(r event.Reading, interval int64) {
	if !r.OK() {
		s.absence = r
		return
	}
	s.total, s.time, s.seen = s.total+r.V*float64(interval), s.time+float64(interval), true
	s.peak = max(s.peak, r.V)
}

// Mean returns the mean over time.
func (s *Sum) Mean() event.Reading {
	if s.time == 0 {
		return s.absence
	}
	return event.MeasuredValue(s.total / s.time)
}

// Highest returns the highest reading.
func (s *Sum) Highest() event.Reading {
	if !s.seen {
		return s.absence
	}
	return event.MeasuredValue(s.peak)
}

// Sum returns the integral of a rate per second.
func (s *Sum) Sum() event.Reading {
	if s.time == 0 {
		return s.absence
	}
	return event.MeasuredValue(s.total / 1e9)
}

// with returns a copy with one more sample. Its interval counts as far as it is within the session, which began at a time,
// and not counted yet: an engine that was already running sends its last sample again to those that connect.
func (u *HostUsage) with(began, at event.Time, h *event.Host) *HostUsage {
	if at == beforeClock {
		return u
	}
	k := new(HostUsage)
	if u != nil {
		*k = *u
	}
	interval := max(int64(at-max(began, k.until, at-event.Time(h.Interval))), 0)
	k.until = max(k.until, at)
	k.Nanos += interval
	k.Cores = max(k.Cores, len(h.Cores))
	k.CPU.add(h.CPU, interval)
	k.Frequency.add(h.Frequency, interval)
	k.Memory.add(h.MemUsed, interval)
	k.MemoryTotal.add(h.MemTotal, interval)
	k.Engine.add(&h.Engine, interval)
	k.Self.add(&h.Self, interval)
	k.GPUs = slices.Clone(k.GPUs)
	for i, g := range h.GPUs {
		if i == len(k.GPUs) {
			k.GPUs = append(k.GPUs, GPUUsage{Name: g.Name})
		}
		k.GPUs[i].Util.add(g.Util, interval)
		k.GPUs[i].Power.add(g.Power, interval)
		k.GPUs[i].Memory.add(g.MemUsed, interval)
	}
	return k
}

// add adds a sample of a process. interval is that of the sample of the machine.
func (u *ProcessUsage) add(p *event.Process, interval int64) {
	if p.Interval > 0 {
		interval = p.Interval
	}
	u.CPU.add(p.CPU, interval)
	u.RSS.add(p.RSS, interval)
	u.Peak.add(p.Peak, interval)
	u.Read.add(p.Read, interval)
	u.Write.add(p.Write, interval)
	u.ReadOps.add(p.ReadOps, interval)
	u.WriteOps.add(p.WriteOps, interval)
}
