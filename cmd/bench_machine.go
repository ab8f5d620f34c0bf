package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/host"
)

// measureLimits measures the limits of this machine with a number of threads; 0: one per core.
func measureLimits(threads int) report.Limits {
	l := native.MeasureLimits(threads)
	return report.Limits{
		Threads: l.Threads, Kernels: l.Kernels, Copy: report.Measured(host.CopyBandwidth(l.Threads)), Weights: report.Measured(l.Read), Compute: report.Measured(l.Compute),
	}
}

func newBenchMachineCommand() *cobra.Command {
	var threads int
	var file string
	c := &cobra.Command{
		Use:   "machine",
		Short: "Measure the limits of this machine",
		Long: `machine measures the limits of inference on this machine's processors with the built-in engine's
kernels on Q8_0 weights: memory copy bandwidth, weight read bandwidth of matrix-vector products (the
limit of decode), and matrix product throughput (the limit of prefill).`,
		Args: refuseArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if threads < 0 || threads > maxThreads {
				return usagef("--threads %d: must be 0 to %d", threads, maxThreads)
			}
			out, err := create(file, false)
			if err != nil {
				return err
			}
			l := measureLimits(threads)
			if out == nil {
				return l.Write(c.OutOrStdout())
			}
			return write(out, func(w io.Writer) error { return clean.NewEncoder(w).Encode(l) })
		},
	}
	c.Flags().IntVar(&threads, "threads", 0, "worker threads; 0: one per core")
	c.Flags().StringVar(&file, "json", "", "write the limits as JSON to `FILE`, - for stdout")
	return c
}
