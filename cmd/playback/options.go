// Package playback plays recordings: on the screen, or into a report.
package playback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/config"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
)

// Options are the flags and arguments that say what to replay.
type Options struct {
	screen.View
	out    *files.Out
	speed  float64
	paused bool
	engine string // engine to report; "": all
	file   string
	open   func() (*recording.Recording, error)
}

// New returns options for a recording of a command with its own flags: at its own speed, of all engines.
func New(v *screen.View, out *files.Out) *Options { return &Options{View: *v, out: out, speed: 1} }

// Bind adds the flags, and reads the config file.
func (o *Options) Bind(c *cobra.Command) {
	flags := c.Flags()
	o.Camera = &screen.Camera{}
	o.Watches = true
	o.View.Bind(flags)
	o.Camera.Bind(flags)
	o.out = files.BindReports(flags)
	flags.Float64Var(&o.speed, "speed", 1, fmt.Sprintf("speed factor, %v to %v", recording.Slowest, recording.Fastest))
	flags.BoolVar(&o.paused, "paused", false, "start paused")
	o.out.BindHeadless(flags, "report without a screen and exit")
	BindEngine(flags, &o.engine)
	config.Use(c, &o.Alerts, local.ConfigFlags(), o.check)
}

// BindEngine adds the flag that chooses the engine to report.
func BindEngine(set *pflag.FlagSet, name *string) {
	set.StringVar(name, "engine", "", "report only the engine with this `NAME` or part of a name, of several")
}

func (o *Options) check() error {
	if !(o.speed >= recording.Slowest && o.speed <= recording.Fastest) {
		return exit.Usagef("--speed %v: must be %v to %v", o.speed, recording.Slowest, recording.Fastest)
	}
	if err := o.View.Check(); err != nil {
		return err
	}
	switch c := o.Camera; {
	case o.engine != "" && !o.out.Headless && !o.out.Reports():
		return exit.Usagef("--engine needs --headless: the screen shows all engines in view 7")
	case c.Enabled() && (o.out.Headless || o.out.Reports()):
		return exit.Usagef("a recorded screen (.cast, .svg) cannot be combined with --headless or report files")
	case c.Enabled() && o.paused && c.Endless():
		return exit.Usagef("--paused: the recording would never end: add --script FILE or --for DURATION")
	}
	return nil
}

// Run replays a file: into a cast, on the screen, or into a report.
func (o *Options) Run(ctx context.Context, file string, stdout, notes io.Writer) error {
	return o.Play(ctx, file, func() (*recording.Recording, error) { return openRecording(file) }, stdout, notes)
}

// Play is Run for a recording that open opens, as often as it is needed.
func (o *Options) Play(ctx context.Context, name string, open func() (*recording.Recording, error), stdout, notes io.Writer) error {
	o.file, o.open = name, open
	rec, err := open()
	if err != nil {
		return exit.Usage(err)
	}
	defer rec.Close() // read only
	shown := !o.out.Silent() && o.Visible()
	switch {
	case o.Camera.Enabled():
		return o.cast(ctx, rec, notes)
	case shown && !o.out.Reports():
		return o.live(ctx, rec)
	}
	return o.out.Write(stdout, notes, o.out.Headless || !o.out.Reports(), func() (*report.Report, error) {
		if shown {
			if err := o.live(ctx, rec); err != nil {
				return nil, err
			}
		}
		return o.report(ctx, notes)
	})
}

// report plays the recording into a report of the chosen engine.
func (o *Options) report(ctx context.Context, notes io.Writer) (*report.Report, error) {
	ctx, stop := exit.WithSignals(ctx, exit.ErrInterrupted)
	defer stop()
	rec, err := o.open() // the screen may have read the other one
	if err != nil {
		return nil, err
	}
	defer rec.Close() // read only
	built, err := reportOf(ctx, rec, o.file, &o.View, nil, notes)
	if built == nil {
		return nil, err
	}
	one, mistake := SelectEngine(built, o.engine, o.file)
	if mistake != nil {
		return nil, mistake
	}
	return one, err
}

// openRecording opens a recording. Its errors name the file once.
func openRecording(name string) (*recording.Recording, error) {
	rec, err := recording.Open(name)
	if errors.Is(err, recording.ErrNotRecording) {
		return nil, fmt.Errorf("replay %s: not a recording: make one with --out FILE.llmtop", name)
	}
	return rec, openError(name, err)
}

// openError returns an error of opening a file that names the file once, nil for nil.
func openError(name string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Path == name {
		return fmt.Errorf("open %s: %w", name, at.Err)
	}
	return err
}
