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
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/timeline"
	"github.com/spf13/cobra"
)

func newReportCommand() *cobra.Command {
	var out *files.Out
	var engine string // of a recording of several; "": all
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Convert a report or recording",
		Long: `report reads a report (.json) or a recording (.llmtop) of any command and writes it as text, or in
the formats of --out. FILE.perfetto.json is the timeline of a recording, for ui.perfetto.dev.`,
		Example: `  llmtop report bench.json --out bench.html
  llmtop report session.llmtop --out - --out session.tokens.csv
  llmtop report session.llmtop --out session.perfetto.json`,
		Args: takes(1, 1, "report needs one report or recording: llmtop report FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
			defer stop()
			return convert(ctx, args[0], engine, out, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	out = files.BindReports(c.Flags())
	files.BindOut(c.Flags(), files.Timeline)
	playback.BindEngine(c.Flags(), &engine)
	return c
}

// convert writes a report, or that of one engine of it, to the files of out, or as text.
func convert(ctx context.Context, name, engine string, out *files.Out, stdout, notes io.Writer) error {
	var trace *timeline.Trace
	if out.Name(files.Timeline) != "" {
		trace = timeline.New()
	}
	all, err := playback.ReadReport(ctx, name, trace, notes)
	if err != nil {
		return exit.Usage(err)
	}
	r, err := playback.SelectEngine(all, engine, name)
	if err != nil {
		return err
	}
	if r.Stageless() && out.Name(files.Stages) != "" {
		return exit.Usagef("%s has no stages: use the recording", name)
	}
	if trace != nil {
		if all.Fleet != nil && r != all {
			i := slices.IndexFunc(all.Fleet.Replicas, func(of report.Replica) bool { return of.Report == r })
			trace.Keep(all.Fleet.Replicas[i].Name)
		}
		if err := writeTimeline(trace, out.Name(files.Timeline), notes); err != nil || !out.Reports() {
			return err
		}
	}
	return out.Write(stdout, notes, true, func() (*report.Report, error) { return r, nil })
}

// writeTimeline writes the timeline of a recording.
func writeTimeline(trace *timeline.Trace, name string, notes io.Writer) error {
	file, err := files.OpenOutput(name, false)
	if err != nil {
		return err
	}
	if n := trace.Omitted(); n > 0 {
		fmt.Fprintf(notes, "the timeline omits %s beyond its limit of memory\n", metric.Plural(n, "event"))
	}
	return files.WriteOutput(file, func(w io.Writer) error { return trace.Write(w, "llmtop "+version.String()) })
}
