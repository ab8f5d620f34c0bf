package host

import (
	"context"
	"runtime"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	// slowShare is the part of a core that the slow calls may take: a call of 1 ms every 4 s.
	slowShare = 1. / 4000
	// energyVisits is how many times more seldom energy is read than the rest. It takes twice as long, and is a counter.
	energyVisits = 4
	// contextMemory is less than a process needs to use a GPU.
	contextMemory = 64 << 20
)

// slowReadings are what the driver takes 1 to 3 ms for, as it asks the GPU.
type slowReadings struct {
	gpu    event.GPU          // energy, PCIe and what GPM measures
	shares map[uint32]float64 // busy time by process
	pids   []uint32           // processes that used the GPU at the last reading
	alone  bool               // at most one process uses the GPU: it has all the busy time
	usage  event.Reading      // why there are no shares
}

func (s *slowReadings) reset() {
	for _, v := range s.of(&s.gpu) {
		*v = event.Absent(event.NotYet)
	}
	s.usage, s.alone = event.Absent(event.NotYet), true
}

// of returns the fields of a GPU that are read slowly.
func (*slowReadings) of(g *event.GPU) []*event.Reading {
	return []*event.Reading{&g.Energy, &g.PCIeIn, &g.PCIeOut, &g.SM, &g.Occupancy, &g.Tensor, &g.DRAM}
}

// watch makes the slow calls for one GPU after another until ctx ends, as seldom as the time asks for that they take.
func (r *nvidia) watch(ctx context.Context) {
	runtime.LockOSThread() // threadTime is that of these calls
	defer runtime.UnlockOSThread()
	for i := 0; ctx.Err() == nil; i = (i + 1) % len(r.devices) {
		began := threadTime()
		r.visit(r.devices[i])
		wait := max(gpuInterval/time.Duration(len(r.devices)), time.Duration(float64(threadTime()-began)/slowShare))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// visit makes the slow calls for a GPU.
func (r *nvidia) visit(d *nvmlDevice) {
	r.mu.Lock()
	slow, pids := d.slow, d.slow.pids
	r.mu.Unlock()
	g := &slow.gpu
	if !r.measure(d, g) {
		g.PCIeIn, g.PCIeOut = event.Absent(event.NotReported), event.Absent(event.NotReported)
		if pcie := r.lib.pcie; pcie != nil { // each call takes 20 ms, over which the driver measures
			for into, counter := range map[*event.Reading]uint32{&g.PCIeIn: nvmlPCIeIn, &g.PCIeOut: nvmlPCIeSent} {
				*into = d.number(func(handle uintptr, kilobytes *uint32) int32 { return pcie(handle, counter, kilobytes) }, 1e3)
			}
		}
	}
	if d.visits%energyVisits == 2 { // after the first rates
		g.Energy = event.Absent(event.NotReported)
		if r.lib.total != nil {
			var millijoules uint64
			g.Energy = nvmlReading(r.lib.total(d.handle, &millijoules), millijoules, 1e-3)
		}
	}
	d.visits++
	if slow.alone {
		d.usedUntil, slow.shares = 0, nil // what was before is not of the processes that come
		slow.usage = event.Absent(event.NotYet)
	} else {
		slow.shares, slow.usage = r.shares(d, pids)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.slow.gpu, d.slow.shares, d.slow.usage = slow.gpu, slow.shares, slow.usage
}

// listed notes which processes use a GPU, and sets their busy time. If there is one only, and the memory in use leaves no
// room for a second, its busy time is that of the GPU.
func (r *nvidia) listed(d *nvmlDevice, g *event.GPU, list []event.GPUProcess) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &d.slow
	var mem event.Reading
	s.pids = s.pids[:0:0]
	for _, p := range list {
		s.pids, mem = append(s.pids, uint32(p.PID)), p.Mem
	}
	s.alone = g.Util.OK() && (len(list) == 0 || len(list) == 1 && mem.OK() && g.MemUsed.OK() && g.MemUsed.V-mem.V < contextMemory)
	for i := range list {
		share, ok := s.shares[uint32(list[i].PID)]
		switch {
		case s.alone:
			list[i].Util = g.Util
		case ok:
			list[i].Util = measured(share)
		case s.shares != nil:
			list[i].Util = event.Absent(event.NotYet)
		default:
			list[i].Util = s.usage
		}
	}
	for i, into := range s.of(g) {
		*into = *s.of(&s.gpu)[i]
	}
}

// Metrics of GPM.
const nvmlSM, nvmlOccupancy, nvmlTensor, nvmlDRAM, nvmlPCIeOutMiB, nvmlPCIeInMiB = 2, 3, 5, 10, 20, 21

// measure reads the GPU's performance counters over the time since the last call; false if it has none.
func (r *nvidia) measure(d *nvmlDevice, g *event.GPU) bool {
	into := [...]struct {
		id   uint32
		r    *event.Reading
		unit float64
		most float64 // 0: any
	}{
		{nvmlSM, &g.SM, .01, 1},
		{nvmlOccupancy, &g.Occupancy, .01, 1},
		{nvmlTensor, &g.Tensor, .01, 1},
		{nvmlDRAM, &g.DRAM, .01, 1},
		{nvmlPCIeInMiB, &g.PCIeIn, 1 << 20, 0},
		{nvmlPCIeOutMiB, &g.PCIeOut, 1 << 20, 0},
	}
	set := func(why event.Origin) {
		for _, v := range into {
			*v.r = event.Absent(why)
		}
	}
	set(event.NotReported)
	if d.gpm[0] == 0 || d.gpm[1] == 0 {
		return false
	}
	if result := r.lib.gpmGet(d.handle, d.gpm[1]); result != nvmlSuccess {
		d.sampled = false
		set(nvmlReading(result, 0, 1).Origin)
		return false
	}
	if d.sampled {
		m := &r.metrics
		m.version, m.n, m.samples = 1, uint32(len(into)), d.gpm
		for i, v := range into {
			m.metrics[i] = nvmlMetric{id: v.id}
		}
		result := r.lib.gpmMetrics(m)
		for i, v := range into {
			got := m.metrics[i]
			if n := got.value * v.unit; result == nvmlSuccess && got.result == nvmlSuccess && n >= 0 && (v.most == 0 || n <= v.most+.005) {
				*v.r = measured(n)
				if v.most > 0 {
					v.r.V = min(n, v.most)
				}
			}
		}
	} else {
		set(event.NotYet)
	}
	d.sampled = true
	d.gpm[0], d.gpm[1] = d.gpm[1], d.gpm[0]
	return true
}

// shares returns the busy time of processes since the last call, as means of the driver's samples; or the reason why it is
// unknown. The driver has no samples of processes that did not use the GPU.
func (r *nvidia) shares(d *nvmlDevice, pids []uint32) (map[uint32]float64, event.Reading) {
	if r.lib.usage == nil {
		return nil, event.Absent(event.NotReported)
	}
	n, after := uint32(len(r.used)), d.usedUntil
	result := r.lib.usage(d.handle, &r.used[0], &n, after)
	if result == nvmlNotFound {
		n = 0
	} else if result != nvmlSuccess {
		return nil, nvmlReading(result, 0, 1)
	}
	sums, counts := make(map[uint32]float64), make(map[uint32]float64)
	for _, pid := range pids {
		sums[pid] = 0
	}
	for _, u := range r.used[:min(n, uint32(len(r.used)))] {
		if u.at > after && u.sm <= 100 {
			sums[u.pid], counts[u.pid] = sums[u.pid]+float64(u.sm)/100, counts[u.pid]+1
			d.usedUntil = max(d.usedUntil, u.at)
		}
	}
	if after == 0 { // samples of many seconds
		return nil, event.Absent(event.NotYet)
	}
	for pid, n := range counts {
		sums[pid] /= n
	}
	return sums, event.Reading{}
}
