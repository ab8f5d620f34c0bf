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
	out    *files.Out
	engine string // engine of a recording of several; "": all
}

func newReportCommand() *cobra.Command {
	var opts reportOptions
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Convert a report or recording",
		Long: `report reads a report (.json) or a recording (.llmtop) of any command and writes it as text, or in
the formats of --out. FILE.perfetto.json is the timeline of a recording, for ui.perfetto.dev.`,
		Example: `  llmtop report bench.json --out bench.html
  llmtop report session.llmtop --out - --out session.tokens.csv
  llmtop report session.llmtop --out session.perfetto.json`,
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
	opts.out = files.BindReports(c.Flags())
	files.BindOut(c.Flags(), files.Timeline)
	playback.BindEngine(c.Flags(), &opts.engine)
	return c
}

func (o *reportOptions) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	var trace *timeline.Trace
	if o.out.Name(files.Timeline) != "" {
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
	if r.Stageless() && o.out.Name(files.Stages) != "" {
		return exit.Usagef("%s has no stages: use the recording", name)
	}
	if trace != nil {
		if all.Fleet != nil && r != all {
			i := slices.IndexFunc(all.Fleet.Replicas, func(of report.Replica) bool { return of.Report == r })
			trace.Keep(all.Fleet.Replicas[i].Name)
		}
		if err := o.writeTimeline(trace, notes); err != nil || !o.out.Reports() {
			return err
		}
	}
	return o.out.Write(files.Printed{Stdout: stdout, Notes: notes, Full: true}, func() (*report.Report, error) { return r, nil })
}

// writeTimeline writes the timeline of a recording.
func (o *reportOptions) writeTimeline(trace *timeline.Trace, notes io.Writer) error {
	file, err := files.OpenOutput(o.out.Name(files.Timeline), false)
	if err != nil {
		return err
	}
	if n := trace.Omitted(); n > 0 {
		fmt.Fprintf(notes, "the timeline omits %d events beyond its limit of memory\n", n)
	}
	return files.WriteOutput(file, func(w io.Writer) error { return trace.Write(w, "llmtop "+version.String()) })
}
