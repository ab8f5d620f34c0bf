package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// interval returns the evidence for the time between two times: samples of the engine's threads that overlap it, or else
// those of the machine.
func interval(s *state, from, to event.Time) verdict.Interval {
	i := verdict.Interval{Coarse: true, Threads: float64(s.engine.Device.Threads), ReadTotal: s.causes.read, ModelBytes: float64(s.model.Bytes)}
	if s.causes.sampled() { // hundreds of polled servers are not
		i = sampled(s, i, from, to)
	}
	return i
}

// sampled returns i with the samples between two times.
func sampled(s *state, i verdict.Interval, from, to event.Time) verdict.Interval {
	c := &s.causes
	for k := len(c.usage) - 1; k >= 0 && c.usage[k].to > from; k-- {
		if u := &c.usage[k]; u.from < to {
			i.Span = event.Add(i.Span, u.of.Interval)
			i.Usage.Add(u.of)
		}
	}
	i.Coarse = i.Span == 0
	for k := len(c.hosts) - 1; k >= 0 && c.hosts[k].to > from; k-- {
		h := &c.hosts[k]
		if h.from >= to {
			continue
		}
		addHost(s, &i, h)
	}
	return i
}

// addHost adds a sample of the machine. What it says of the engine counts only if there are no finer samples.
func addHost(s *state, i *verdict.Interval, h *sample[event.Host]) {
	p, e := h.of, &h.of.Engine
	ns, cores := float64(p.Interval), float64(len(p.Cores))
	over := func(r event.Reading, factor float64) event.Reading {
		if r.OK() {
			r = event.DerivedValue(r.V * factor)
		}
		return r
	}
	add := func(sum *event.Reading, r event.Reading) {
		if r.OK() {
			*sum = event.DerivedValue(sum.V + max(r.V, 0))
		}
	}
	if p.CPU.OK() && e.CPU.OK() && cores > 0 {
		add(&i.Others, event.DerivedValue(max((p.CPU.V-max(p.Steal.V, 0))*cores-e.CPU.V, 0)*ns))
		i.OthersSpan = event.Add(i.OthersSpan, p.Interval)
	}
	add(&i.Stolen, over(p.Steal, ns))
	if clock := busyClock(p); clock.OK() && (!i.Clock.OK() || clock.V < i.Clock.V) {
		i.Clock = clock
	}
	addGPUs(s, i, p)
	if !i.Coarse {
		return
	}
	i.Span = event.Add(i.Span, p.Interval)
	available := e.Cores
	if !available.OK() && cores > 0 {
		available = event.DerivedValue(cores)
	}
	u := event.Usage{
		Running: over(e.CPU, ns), Waiting: over(e.RunWait, ns), Cores: available, Faults: over(e.Faults, ns/second), Read: over(e.Read, ns/second),
		Throttled: over(p.Throttled, ns), MemoryStall: over(p.MemPressure, ns),
	}
	if s.engine.Device.Threads > 0 {
		u.Threads = event.ReportedValue(float64(s.engine.Device.Threads))
	}
	if e.PID == p.Self.PID {
		u.GCPause = p.Self.GCPause
	}
	i.Usage.Add(&u)
}

// addGPUs adds a sample of the GPUs on which the engine has memory.
func addGPUs(s *state, i *verdict.Interval, p *event.Host) {
	var worst verdict.GPUTime
	part := func(share float64) int64 { return int64(min(max(share, 0), 1) * float64(p.Interval)) }
	for k := range p.GPUs {
		g := &p.GPUs[k]
		if !g.EngineMem.OK() || g.EngineMem.V <= 0 {
			continue
		}
		worst.Span = p.Interval
		if g.DRAM.OK() {
			worst.Measured = true
			if dram := part(g.DRAM.V); dram >= worst.DRAM {
				worst.DRAM, worst.Bandwidth = dram, max(g.MemBandwidth.V, 0)
			}
		}
		const saturated = 0.9
		if g.EngineUtil.OK() && g.OthersUtil.OK() && g.EngineUtil.V+g.OthersUtil.V >= saturated {
			worst.Others = max(worst.Others, part(g.OthersUtil.V))
		}
		if !g.Clock.OK() || !g.MaxClock.OK() || g.MaxClock.V <= 0 || g.DRAM.OK() && g.DRAM.V >= verdict.MemoryBound {
			continue
		}
		slower := part(1 - g.Clock.V/g.MaxClock.V)
		switch {
		case g.ThermallySlowed.OK() && g.ThermallySlowed.V > 0:
			worst.Hot = max(worst.Hot, slower)
		case g.PowerCapped.OK() && g.PowerCapped.V > 0:
			worst.Capped = max(worst.Capped, slower)
		}
	}
	e := &p.Engine
	if e.LaunchGap.OK() {
		worst.Span, worst.Gaps, worst.Graphs = p.Interval, part(e.LaunchGap.V), e.Graphs.V > 0
	}
	if e.Copying.OK() {
		worst.Span, worst.Copies = p.Interval, part(e.Copying.V)
	}
	sum := &i.GPU
	sum.Span, sum.Capped, sum.Hot = event.Add(sum.Span, worst.Span), event.Add(sum.Capped, worst.Capped), event.Add(sum.Hot, worst.Hot)
	sum.Others, sum.Gaps, sum.DRAM = event.Add(sum.Others, worst.Others), event.Add(sum.Gaps, worst.Gaps), event.Add(sum.DRAM, worst.DRAM)
	sum.Copies, sum.HostExperts = event.Add(sum.Copies, worst.Copies), s.engine.Device.HostExperts
	sum.Graphs, sum.Measured = sum.Graphs || worst.Graphs, sum.Measured || worst.Measured
	sum.Bandwidth = max(sum.Bandwidth, worst.Bandwidth)
}

// gpuReads sets what decoding reads of the memory of the GPUs, if that holds all weights, and their bandwidth in all: of
// GPUs that compute one after another, the share is then too low, and names no cause.
func gpuReads(s *state, g *verdict.GPUTime, w *secondWork) {
	h, held, all := s.machine.last(), 0., 0.
	for i := range h.GPUs {
		if u := &h.GPUs[i]; u.EngineMem.OK() && u.EngineMem.V > 0 {
			if !u.MemBandwidth.OK() || u.DRAM.OK() {
				return
			}
			held, all = held+u.EngineMem.V, all+u.MemBandwidth.V
		}
	}
	if rate := s.readRate(w); !s.engine.Device.Host && rate.OK() && held >= float64(s.model.WeightBytes) {
		g.Reads, g.Bandwidth = rate.V, all
	}
}

// busyClock returns the frequency of the cores, weighted by their use, as a share of the highest.
func busyClock(p *event.Host) event.Reading {
	if !p.MaxClock.OK() || p.MaxClock.V <= 0 || len(p.Clocks) == 0 || len(p.Clocks) != len(p.Cores) {
		return event.Absent(event.NotReported)
	}
	var clock, use float64
	for i, share := range p.Cores {
		clock, use = clock+share*p.Clocks[i], use+share
	}
	if use < 0.1 { // idle cores are slow on purpose
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(min(clock/use/p.MaxClock.V, 1))
}
