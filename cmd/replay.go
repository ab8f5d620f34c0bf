package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// replayOptions are the flags of the replay command.
type replayOptions struct {
	view
	files    reportFiles
	config   string
	file     string
	speed    float64
	paused   bool
	headless bool
	engine   string // engine to report; "": all
}

func newReplayCommand() *cobra.Command {
	var opts replayOptions
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a recording",
		Long: `replay shows a recording (llmtop run --record FILE) as it was live: at its own speed, faster,
slower, step by step, or from any point. With --headless, or if standard output is not a terminal,
it writes the report of the recording. With --cast or --svg it records the screen, faster than real
time (see llmtop record --help).

It also reads request traces (dynamo.request.trace.v1) and forward-pass traces of Dynamo, as JSON
Lines, plain or gzipped.`,
		Example: `  llmtop replay session.llmtop --speed 10
  llmtop replay session.llmtop --headless --json report.json
  llmtop replay session.llmtop --cast session.cast --script demo.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("replay needs one recording: llmtop replay FILE")
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
	flags.Float64Var(&opts.speed, "speed", 1, fmt.Sprintf("speed factor, %v to %v", recording.Slowest, recording.Fastest))
	flags.BoolVar(&opts.paused, "paused", false, "start paused")
	flags.BoolVar(&opts.headless, "headless", false, "report without a screen and exit")
	bindEngineName(flags, &opts.engine)
	useConfig(c, &opts.config, &opts.tables, opts.check)
	return c
}

func (o *replayOptions) check() error {
	if !(o.speed >= recording.Slowest && o.speed <= recording.Fastest) {
		return usagef("--speed %v: must be %v to %v", o.speed, recording.Slowest, recording.Fastest)
	}
	if err := o.files.checkHeadless(o.headless); err != nil {
		return err
	}
	if err := o.view.check(); err != nil {
		return err
	}
	switch c := o.camera; {
	case o.engine != "" && !o.headless:
		return usagef("--engine needs --headless: the screen shows all engines in view 7")
	case c.enabled() && o.headless:
		return usagef("--cast and --svg cannot be combined with --headless")
	case c.enabled() && o.paused && c.script == "" && c.length == 0:
		return usagef("--paused: the recording would never end: add --script FILE or --for DURATION")
	}
	return nil
}

func (o *replayOptions) run(c *cobra.Command) error {
	rec, err := openRecording(o.file, c.ErrOrStderr())
	if err != nil {
		return usageError{err}
	}
	defer rec.Close() // read only
	if o.camera.enabled() {
		return o.runCast(c.Context(), rec, c.ErrOrStderr())
	}
	if !o.headless && o.view.visible() {
		return o.runLive(c.Context(), rec)
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	return o.runHeadless(ctx, rec, c.OutOrStdout())
}

// openRecording opens a recording, or imports a trace of another program.
func openRecording(name string, notes io.Writer) (*recording.Recording, error) {
	rec, err := recording.Open(name)
	if !errors.Is(err, recording.ErrNotRecording) {
		return rec, openError(name, err)
	}
	file, openErr := os.Open(name)
	if openErr != nil {
		return nil, openError(name, openErr)
	}
	defer file.Close()
	rec, imported, importErr := recording.Import(file, &wire.Codec{})
	if importErr != nil {
		return nil, fmt.Errorf("replay %s: neither a recording nor a Dynamo trace: %w", name, importErr)
	}
	if imported.Skipped > 0 {
		fmt.Fprintf(notes, "skipped %d of %d lines\n", imported.Skipped, imported.Skipped+imported.Rows)
	}
	return rec, nil
}

// openError returns an error of opening a file that names the file once, nil for nil.
func openError(name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == name {
		return fmt.Errorf("open %s: %w", name, at.Err)
	}
	return err
}

// newCodec returns the codec of recordings.
func newCodec() recording.Codec { return &wire.Codec{} }

// runHeadless plays the recording at full speed and writes the report.
func (o *replayOptions) runHeadless(ctx context.Context, rec *recording.Recording, stdout io.Writer) error {
	out, err := o.files.open()
	if err != nil {
		return err
	}
	built, err := reportOf(ctx, rec, o.file, &o.view)
	if built == nil {
		out.discard()
		return err
	}
	built, mistake := selectEngine(built, o.engine, o.file)
	if mistake != nil {
		out.discard()
		return mistake
	}
	return errors.Join(err, out.write(built, stdout))
}

// reportOf plays a recording at full speed and returns its report, nil if it cannot be played. With an error, the
// report covers the part before it.
func reportOf(ctx context.Context, rec *recording.Recording, name string, judged *view) (*report.Report, error) {
	if rec.MultiEngine {
		return reportEngines(ctx, rec, name, judged)
	}
	var s *session
	player, err := recording.NewPlayer(rec, recording.PlayOptions{
		Codec: newCodec, Speed: recording.Unpaced, StopAtEnd: true, Drain: func() { s.store.Snapshot() },
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
			return interruptCause(ctx, ctx.Err())
		}
	})
	return report.Build(report.Meta{
		Version: versionString(), Partial: err != nil, Remote: true, Configuration: replayed(name, judged),
	}, s.store.Snapshot(), collector), err
}

// replayed returns the configuration in the report of a recording.
func replayed(name string, judged *view) map[string]string {
	return judged.addTargets(map[string]string{"replay": name})
}
