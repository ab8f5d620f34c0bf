package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/timeline"
	"github.com/spf13/cobra"
)

// reportOptions are the flags of the report command.
type reportOptions struct {
	files  files.Reports
	engine string // engine of a recording of several; "": all
	trace  string // file of the timeline; "": none
}

func newReportCommand() *cobra.Command {
	var opts reportOptions
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Convert a report or recording",
		Long: `report reads a report (--json of any command) or a recording (--record) and writes it as text or in
the given formats. --perfetto writes the timeline of a recording for ui.perfetto.dev.`,
		Example: `  llmtop report bench.json --html bench.html
  llmtop report session.llmtop --json -
  llmtop report session.llmtop --perfetto timeline.json`,
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
	opts.files.Bind(c.Flags())
	files.OutputFlag(c.Flags(), &opts.trace, "perfetto", "write the timeline of a recording as a Chrome trace to `FILE`, - for stdout")
	playback.BindEngine(c.Flags(), &opts.engine)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	var trace *timeline.Trace
	if o.trace != "" {
		trace = timeline.New()
	}
	all, err := playback.ReadReport(ctx, name, trace, notes)
	if err != nil {
		return exit.Usage(err)
	}
	r, err := playback.SelectEngine(all, o.engine, name)
	if err != nil {
		return err
	}
	if r.Stageless() && o.files.Name("csv-stages") != "" {
		return exit.Usagef("--csv-stages: %s has no stages: use the recording", name)
	}
	if trace != nil {
		if all.Fleet != nil && r != all {
			i := slices.IndexFunc(all.Fleet.Replicas, func(of report.Replica) bool { return of.Report == r })
			trace.Keep(all.Fleet.Replicas[i].Name)
		}
		if err := o.writeTimeline(trace, notes); err != nil || !o.files.Any() {
			return err
		}
	}
	return o.files.Write(files.Printed{Stdout: stdout, Notes: notes, Full: true}, func() (*report.Report, error) { return r, nil })
}

// writeTimeline writes the timeline of a recording.
func (o *reportOptions) writeTimeline(trace *timeline.Trace, notes io.Writer) error {
	file, err := files.OpenOutput(o.trace, false)
	if err != nil {
		return err
	}
	if n := trace.Omitted(); n > 0 {
		fmt.Fprintf(notes, "--perfetto: the timeline omits %d events beyond its limit of memory\n", n)
	}
	return files.WriteOutput(file, func(w io.Writer) error { return trace.Write(w, "llmtop "+version.String()) })
}
