package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/native"
)

// machineLimits are what this machine reaches, as they are written.
type machineLimits struct {
	Threads int     `json:"threads"`
	Kernels string  `json:"kernels"`
	Copy    float64 `json:"copy_bytes_per_s"`
	Read    float64 `json:"weights_bytes_per_s"`
	Compute float64 `json:"compute_flop_per_s"`
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
			limits := native.MeasureLimits(threads)
			m := machineLimits{limits.Threads, limits.Kernels, host.CopyBandwidth(limits.Threads), limits.Read, limits.Compute}
			if out == nil {
				return m.write(c.OutOrStdout())
			}
			return write(out, func(w io.Writer) error { return json.NewEncoder(w).Encode(m) })
		},
	}
	c.Flags().IntVar(&threads, "threads", 0, "threads; 0: one a core")
	c.Flags().StringVar(&file, "json", "", "write the limits as JSON to this file, - for standard output")
	return c
}

func (m machineLimits) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `%d threads, %s
memory copied          %s/s, bytes read and bytes written
weights read           %s/s by matrix-vector products: the bound of decode
products in the caches %s: the bound of prefill
`, m.Threads, m.Kernels, metric.Bytes(m.Copy), metric.Bytes(m.Read), metric.Flops(m.Compute))
	return err
}
