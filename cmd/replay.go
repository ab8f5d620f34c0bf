package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
)

// replayOptions are what the replay command is told.
type replayOptions struct {
	view
	files    reportFiles
	config   string
	file     string
	speed    float64
	paused   bool
	headless bool
	engine   string // whose report; "": of all
}

func newReplayCommand() *cobra.Command {
	var opts replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Show again what was recorded",
		Long: `replay shows a recording (llmtop run --record FILE) as it was seen live: at its own pace, faster, slower, step by step, or from any
point. With --headless, or when standard output is not a terminal, it makes the report from the recording instead. With --cast or --svg
it records the screen, faster than real time (llmtop record --help).

It also reads Dynamo's request traces (dynamo.request.trace.v1) and forward-pass traces, as JSON Lines, plain or gzipped.`,
		Example: `  llmtop replay session.llmtop --speed 10
  llmtop replay session.llmtop --headless --json report.json
  llmtop replay session.llmtop --cast session.cast --script demo.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("replay takes one recording: llmtop replay FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			opts.file = args[0]
			return opts.run(c)
		},
	}
	flags := c.Flags()
	opts.camera = &camera{}
	opts.view.bind(flags)
	opts.camera.bind(flags)
	opts.files.bind(flags, headlessOnly)
	flags.Float64Var(&opts.speed, "speed", 1, fmt.Sprintf("times as fast as it was: %v to %v", trace.Slowest, trace.Fastest))
	flags.BoolVar(&opts.paused, "paused", false, "begin with a pause")
	flags.BoolVar(&opts.headless, "headless", false, "no screen: report, exit")
	bindEngine(flags, &opts.engine)
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

func (o *replayOptions) check() error {
	if !(o.speed >= trace.Slowest && o.speed <= trace.Fastest) {
		return usagef("--speed %v: must be %v to %v", o.speed, trace.Slowest, trace.Fastest)
	}
	if err := o.files.checkHeadless(o.headless); err != nil {
		return err
	}
	if err := o.view.check(); err != nil {
		return err
	}
	switch c := o.camera; {
	case o.engine != "" && !o.headless:
		return usagef("--engine chooses whose report is written: give --headless; on the screen they are all in view 7")
	case c.on() && o.headless:
		return usagef("--cast and --svg record the screen, of which there is none with --headless")
	case c.on() && o.paused && c.script == "" && c.length == 0:
		return usagef("--paused: the recording would never end; give --script FILE or --for DURATION")
	}
	return nil
}

func (o *replayOptions) run(c *cobra.Command) error {
	rec, err := openRecording(o.file, c.ErrOrStderr())
	if err != nil {
		return usageError{err}
	}
	defer rec.Close() // read only
	if o.camera.on() {
		return o.runCast(c.Context(), rec, c.ErrOrStderr())
	}
	if !o.headless && o.view.visible() {
		return o.runLive(c.Context(), rec)
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	return o.runHeadless(ctx, rec, c.OutOrStdout())
}

// openRecording opens a recording of llmtop's, or else a trace of another program's.
func openRecording(name string, notes io.Writer) (*trace.Recording, error) {
	rec, err := trace.Open(name)
	if !errors.Is(err, trace.ErrNotRecording) {
		return rec, err
	}
	file, openErr := os.Open(name)
	if openErr != nil {
		return nil, openErr
	}
	defer file.Close()
	rec, imported, importErr := trace.Import(file, &wire.Codec{})
	if importErr != nil {
		return nil, fmt.Errorf("replay %s: neither a recording nor a trace of Dynamo: %w", name, importErr)
	}
	if imported.Skipped > 0 {
		fmt.Fprintf(notes, "%d of %d lines could not be used\n", imported.Skipped, imported.Skipped+imported.Rows)
	}
	return rec, nil
}

// newCodec makes the codec of recordings.
func newCodec() trace.Codec { return &wire.Codec{} }

// runHeadless goes through the recording as fast as possible and reports.
func (o *replayOptions) runHeadless(ctx context.Context, rec *trace.Recording, stdout io.Writer) error {
	out, err := o.files.open()
	if err != nil {
		return err
	}
	built, err := reportOf(ctx, rec, o.file, &o.view)
	if built == nil {
		out.discard()
		return err
	}
	built, mistake := ofEngine(built, o.engine, o.file)
	if mistake != nil {
		out.discard()
		return mistake
	}
	return errors.Join(err, out.write(built, stdout))
}

// reportOf goes through a recording as fast as possible and makes the report of it, nil if it cannot be played. With an error beside it, it
// covers what came before.
func reportOf(ctx context.Context, rec *trace.Recording, name string, judged *view) (*report.Report, error) {
	if rec.Several {
		return reportEngines(ctx, rec, name, judged)
	}
	var s *session
	player, err := trace.NewPlayer(rec, trace.PlayOptions{
		Codec: newCodec, Speed: trace.Unpaced, StopAtEnd: true, Drain: func() { s.store.Snapshot() },
	})
	if err != nil {
		return nil, usageError{err}
	}
	collector := report.NewCollector()
	s = newSession(store.Options{Now: player.Now, Wall: player.Wall, Targets: judged.targets, OnRequest: collector.Request})
	s.sink = append(s.sink, collector)
	ended := make(chan struct{})
	s.add("replay", func(ctx context.Context, sink event.Sink) error {
		defer close(ended)
		return player.Run(ctx, sink)
	})
	err = s.run(ctx, func(ctx context.Context) error {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return interrupted(ctx, ctx.Err())
		}
	})
	return report.Build(report.Meta{
		Version: versionString(), Partial: err != nil, Elsewhere: true, Configuration: replayed(name, judged),
	}, s.store.Snapshot(), collector), err
}

// replayed is the configuration that the report of a recording tells.
func replayed(name string, judged *view) map[string]string {
	return judged.tell(map[string]string{"replay": name})
}
