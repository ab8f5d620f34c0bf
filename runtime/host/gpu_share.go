package host

import (
	"os"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// gpuShares separates what the engine uses of each GPU from what others use. It must not be used concurrently.
type gpuShares struct {
	at     time.Time // of the last reading of the clients of drivers
	before drmUse
}

// initialPIDs is the kernel's constant name of the namespace in which processes have the numbers that drivers report.
const initialPIDs = "pid:[4026531836]"

// foreignPIDs reports whether process numbers here differ from those of the driver, as in a container.
func foreignPIDs() bool {
	name, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && name != initialPIDs
}

// set sets the readings of the engine and of others. The list of GPUs in h is replaced, since other events share it.
func (s *gpuShares) set(h *event.Host, pids []int) {
	if len(h.GPUs) == 0 {
		return
	}
	h.GPUs = slices.Clone(h.GPUs)
	for i := range h.GPUs {
		g := &h.GPUs[i]
		for _, r := range [...]*event.Reading{&g.EngineMem, &g.OthersMem, &g.EngineUtil, &g.OthersUtil} {
			*r = event.Absent(event.NotReported)
		}
	}
	if len(pids) == 0 {
		return
	}
	if h.GPUProcesses != nil && !foreignPIDs() {
		shareListed(h, pids)
	}
	s.shareDRM("/", h.GPUs, pids)
}

// shareListed sums what the driver lists of the processes. GPUs with an address are those of shareDRM.
func shareListed(h *event.Host, pids []int) {
	zero := event.MeasuredValue(0)
	for i := range h.GPUs {
		g := &h.GPUs[i]
		if g.Address != "" || !g.MemUsed.OK() && !g.Util.OK() { // or lost
			continue
		}
		g.EngineMem, g.OthersMem, g.EngineUtil, g.OthersUtil = zero, zero, zero, zero
	}
	for _, p := range h.GPUProcesses {
		g := &h.GPUs[p.GPU]
		mem, util := &g.OthersMem, &g.OthersUtil
		if slices.Contains(pids, p.PID) {
			mem, util = &g.EngineMem, &g.EngineUtil
		}
		*mem, *util = addKnown(*mem, p.Mem), addKnown(*util, p.Util)
	}
}

// addKnown adds readings; absent if one of them is.
func addKnown(a, b event.Reading) event.Reading {
	switch {
	case !a.OK():
		return a
	case !b.OK():
		return b
	}
	return event.MeasuredValue(a.V + b.V)
}
