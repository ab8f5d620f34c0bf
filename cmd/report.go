package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/report"
)

// reportOptions are what the report command is told.
type reportOptions struct {
	files  reportFiles
	compat string
	engine string // of a recording of several; "": all
}

func newReportCommand() *cobra.Command {
	var opts reportOptions
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Write the report of a run in another format, or with the numbers of another tool",
		Long: `report reads a report (--json of any command) or a recording (--record) and writes it as text, or in the formats that are asked for. With
--compat it adds the numbers of another benchmark by its own definitions, computed from the answers that FILE holds.`,
		Example: `  llmtop report bench.json --html bench.html
  llmtop report bench.json --compat vllm
  llmtop report session.llmtop --compat aiperf --json -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("report takes one report or recording: llmtop report FILE")
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
	c.Flags().StringVar(&opts.compat, "compat", "", "add the numbers of another tool by its own definitions: "+compat.Names())
	bindEngine(c.Flags(), &opts.engine)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	if err := checkCompat(o.compat); err != nil {
		return err
	}
	r, err := readReport(ctx, name, notes)
	if err != nil {
		return usageError{fmt.Errorf("read %s: %w", name, err)}
	}
	if r, err = ofEngine(r, o.engine, name); err != nil {
		return err
	}
	if r.Fleet != nil && o.compat != "" {
		return usagef("--compat: %s is of several engines: choose one with --engine, of %s", name, namesOf(r.Fleet))
	}
	if r.Stageless() && *o.files.names["csv"] != "" {
		return usagef("--csv: %s does not hold the stages; its recording does", name)
	}
	addCompat(r, o.compat)
	out, err := o.files.open()
	if err != nil {
		return err
	}
	return out.write(r, stdout)
}

// checkCompat refuses the name of a tool that is none; "" is none wanted.
func checkCompat(name string) error {
	if _, ok := compat.ByName(name); !ok && name != "" {
		return usagef("--compat %q: must be one of %s", name, compat.Names())
	}
	return nil
}

// addCompat adds the numbers of a tool to a report, if there is one of that name.
func addCompat(r *report.Report, name string) {
	if tool, ok := compat.ByName(name); ok {
		r.AddCompat(tool)
	}
}
