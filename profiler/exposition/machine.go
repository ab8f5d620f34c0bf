package exposition

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// The limits on series of a machine.
const (
	staleAfter = 10 * time.Second // an older sample is not exported
	maxCores   = 1024             // cores that are exported individually
	maxGPUs    = 64
)

// Metrics from samples of the machine: one per row of the catalogue, and the cores.
var (
	machineMetrics = fieldMetrics(event.MachineFields[:], engineAttr)
	processMetrics = fieldMetrics(event.ProcessFields[:], engineAttr, "process")
	gpuMetrics     = fieldMetrics(event.GPUFields[:], engineAttr, "gpu", "name")
	coreUsage      = gauge("llmtop.host.core.usage", "1", "Share of a core's time that was busy", engineAttr, "core")
)

// fieldMetrics defines the metrics of rows of the catalogue; nil for those that are not exported.
func fieldMetrics[T any](rows []event.Field[T], attrs ...string) []*instrument {
	out := make([]*instrument, len(rows))
	for i := range rows {
		define := gauge
		if rows[i].Sum {
			define = counter
		}
		if unit, _ := rows[i].Unit.Base(); rows[i].Metric != "" {
			out[i] = define(rows[i].Metric, string(unit), sentence(rows[i].Help), attrs...)
		}
	}
	return out
}

func (s *gathering) machine(h *store.Host) {
	addFields(s, event.MachineFields[:], machineMetrics, h.Host, 0)
	for i, share := range h.Cores[:min(len(h.Cores), maxCores)] {
		s.reading(coreUsage, event.MeasuredValue(share), strconv.Itoa(i))
	}
	addFields(s, event.ProcessFields[:], processMetrics, &h.Engine, h.Engine.PID, "engine")
	addFields(s, event.ProcessFields[:], processMetrics, &h.Self, h.Self.PID, "llmtop")
	for i := range h.GPUs[:min(len(h.GPUs), maxGPUs)] {
		g := &h.GPUs[i]
		addFields(s, event.GPUFields[:], gpuMetrics, g, 0, strconv.Itoa(i), cleanLabel(g.Name))
	}
}

// addFields adds the readings of rows of the catalogue. Sums have counted since the process with this pid started;
// negative ones are ignored.
func addFields[T any](s *gathering, rows []event.Field[T], metrics []*instrument, of *T, pid int, values ...string) {
	for i, m := range metrics {
		r := *rows[i].At(of)
		switch {
		case m == nil || !r.OK():
		case !rows[i].Sum:
			_, factor := rows[i].Unit.Base()
			s.add(m, r.V*factor, values...)
		case r.V >= 0:
			s.count(m, r.V, s.countingSince(m, values[0], pid, uint64(r.V)), values...)
		}
	}
}
