package cmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/report"
)

// reportOptions are the flags of the report command.
type reportOptions struct {
	files  reportFiles
	compat string
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
				return usagef("report needs one report or recording: llmtop report FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c.Context(), errInterrupted)
			defer stop()
			return opts.run(ctx, args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	opts.files.bind(c.Flags(), "")
	c.Flags().StringVar(&opts.compat, "compat", "", "add metrics as `TOOL` defines them: "+compat.Names())
	bindEngineName(c.Flags(), &opts.engine)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	if err := checkCompat(o.compat); err != nil {
		return err
	}
	r, err := readReport(ctx, name, notes)
	if err != nil {
		return usageError{err}
	}
	if r, err = selectEngine(r, o.engine, name); err != nil {
		return err
	}
	if r.Fleet != nil && o.compat != "" {
		return usagef("--compat: %s has several engines: choose one with --engine NAME, of %s", name, engineNames(r.Fleet))
	}
	if r.Stageless() && o.files.name("csv") != "" {
		return usagef("--csv: %s has no stages: use the recording", name)
	}
	addCompat(r, o.compat)
	out, err := o.files.open()
	if err != nil {
		return err
	}
	return out.write(r, stdout)
}

// checkCompat refuses the name of an unknown tool; "" is none.
func checkCompat(name string) error {
	if _, ok := compat.ByName(name); !ok && name != "" {
		return usagef("--compat %q: must be one of %s", name, compat.Names())
	}
	return nil
}

// addCompat adds the metrics of the named tool to a report.
func addCompat(r *report.Report, name string) {
	if tool, ok := compat.ByName(name); ok {
		r.AddCompat(tool)
	}
}
