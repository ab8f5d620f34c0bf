package bench

import (
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/host"
)

// MeasureLimits measures the limits of this machine with a number of threads; 0: one per core.
func MeasureLimits(threads int) report.Limits {
	l := native.MeasureLimits(threads)
	return report.Limits{
		Threads: l.Threads, Kernels: l.Kernels, Read: report.Measured(host.ReadBandwidth(l.Threads)), Weights: report.Measured(l.Read), Compute: report.Measured(l.Compute),
	}
}
