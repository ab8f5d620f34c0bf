package cmd

import (
	"io"

	"github.com/llmtop/llmtop/cmd/bench"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/spf13/cobra"
)

func newBenchCommand() *cobra.Command {
	var opts bench.Benchmark
	c := &cobra.Command{
		Use:   "bench [MODEL.gguf | URL | unix:PATH | tcp:HOST:PORT]",
		Short: "Measure an engine under a workload",
		Long: `bench sends requests to a model that llmtop runs, to a server with the OpenAI or Ollama API, or to
an engine behind an event socket, at fixed concurrency (--concurrency) or at a fixed rate (--rate),
and reports the measurements. It repeats every point of the workload, in turns; the spread of the
repeats shows how reliable a number is.

Prompts have exactly --prompt-tokens tokens, unless you give your own with -p, -f, --prompts or
--suite. Outputs have exactly --tokens tokens, unless --honour-eos is set. Ctrl-C stops early and
reports what was measured.`,
		Example: `  llmtop bench
  llmtop bench model.gguf --concurrency 1,2,4 --prompt-tokens 512 --out report.json
  llmtop bench --rate 5,10 --suite --repeats 3
  llmtop bench http://127.0.0.1:8080 --concurrency 1,8
  llmtop bench http://127.0.0.1:8080 --find-capacity --slo ttft=500ms,tpot=50ms`,
		Args: takes(0, 1, "bench takes one model, server or engine: llmtop bench %s"),
		RunE: func(c *cobra.Command, args []string) error {
			return opts.Start(c)
		},
	}
	opts.Bind(c)
	c.AddCommand(newBenchMachineCommand())
	return c
}

func newBenchMachineCommand() *cobra.Command {
	var threads int
	var named *files.Out
	c := &cobra.Command{
		Use:   "machine",
		Short: "Measure the limits of this machine",
		Long: `machine measures the limits of inference on this machine's processors with the built-in engine's
kernels on Q8_0 weights: memory read bandwidth, weight read bandwidth of matrix-vector products (the
limit of decode), and matrix product throughput (the limit of prefill).`,
		Args: refuseArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := local.CheckThreads(threads); err != nil {
				return err
			}
			out, err := files.OpenOutput(named.Name(files.JSON), false)
			if err != nil {
				return err
			}
			l := bench.MeasureLimits(threads)
			if out == nil {
				return l.Write(c.OutOrStdout())
			}
			return files.WriteOutput(out, func(w io.Writer) error { return clean.NewEncoder(w).Encode(l) })
		},
	}
	c.Flags().IntVar(&threads, "threads", 0, "worker threads; 0: one per core")
	named = files.BindOut(c.Flags(), files.JSON)
	return c
}
