package cmd

import (
	"context"
	"io"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/spf13/cobra"
)

// reportOptions are the flags of the report command.
type reportOptions struct {
	files  files.Reports
	compat playback.Compat
	engine string // engine of a recording of several; "": all
}

func newReportCommand() *cobra.Command {
	var opts reportOptions
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Convert a report or recording, or add the metrics of another tool",
		Long: `report reads a report (--json of any command) or a recording (--record) and writes it as text or in
the given formats. --compat adds the metrics of another benchmark tool by its definitions, computed
from the requests in FILE.`,
		Example: `  llmtop report bench.json --html bench.html
  llmtop report bench.json --compat vllm
  llmtop report session.llmtop --compat aiperf --json -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("report needs one report or recording: llmtop report FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
			defer stop()
			return opts.run(ctx, args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	opts.files.Bind(c.Flags(), "")
	opts.compat.Bind(c.Flags())
	playback.BindEngine(c.Flags(), &opts.engine)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	if err := o.compat.Check(); err != nil {
		return err
	}
	r, err := playback.ReadReport(ctx, name, notes)
	if err != nil {
		return exit.Usage(err)
	}
	if r, err = playback.SelectEngine(r, o.engine, name); err != nil {
		return err
	}
	if r.Fleet != nil && o.compat != "" {
		return exit.Usagef("--compat: %s has several engines: choose one with --engine NAME, of %s", name, playback.EngineNames(r.Fleet))
	}
	if r.Stageless() && o.files.Name("csv-stages") != "" {
		return exit.Usagef("--csv-stages: %s has no stages: use the recording", name)
	}
	o.compat.AddTo(r)
	return o.files.Write(stdout, func() (*report.Report, error) { return r, nil })
}
