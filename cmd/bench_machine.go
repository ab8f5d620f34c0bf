package cmd

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/native"
)

// measureLimits measures what this machine reaches with so many threads; 0: one a core.
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
		Short: "Measure what this machine can do, to hold engines against",
		Long: `machine measures the bounds of inference on this machine's processors: how fast memory is copied, how fast weights are read by
matrix-vector products (the bound of decode), and how much matrix products compute (the bound of prefill), both with the built-in engine's own
kernels on Q8_0 weights.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if threads < 0 || threads > maxThreads {
				return usagef("--threads %d: must be 0 to %d", threads, maxThreads)
			}
			out, err := create(file)
			if err != nil {
				return err
			}
			l := measureLimits(threads)
			if out == nil {
				return l.Write(c.OutOrStdout())
			}
			return write(out, func(w io.Writer) error { return json.NewEncoder(w).Encode(l) })
		},
	}
	c.Flags().IntVar(&threads, "threads", 0, "threads; 0: one a core")
	c.Flags().StringVar(&file, "json", "", "write the limits as JSON to this file, - for standard output")
	return c
}
