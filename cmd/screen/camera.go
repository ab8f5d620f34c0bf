package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/cast"
)

// Camera holds the flags that record the screen: as an asciicast, as an animated SVG, or both.
type Camera struct {
	out    *files.Out
	size   string
	script string // path; "": no input
	length time.Duration
	flags  *pflag.FlagSet

	cols, rows int
	play       *cast.Script
}

// Bind adds the flags.
func (c *Camera) Bind(set *pflag.FlagSet) {
	c.flags = set
	c.out = files.BindOut(set, files.Cast, files.SVG)
	c.out.BindText(set)
	set.StringVar(&c.size, "size", "120x36", "size of the recorded screen, `COLUMNSxROWS`")
	set.StringVar(&c.script, "script", "", "TOML `FILE` with keys, text and waits for the recorded screen")
	set.DurationVar(&c.length, "for", 0, "stop recording the screen after `DURATION`")
}

// Enabled reports whether the screen is recorded, which needs no terminal.
func (c *Camera) Enabled() bool {
	return c != nil && (c.out.Name(files.Cast) != "" || c.out.Name(files.SVG) != "")
}

// Endless reports whether nothing but the user ends the recording of a paused screen.
func (c *Camera) Endless() bool { return c.script == "" && c.length == 0 }

// Check validates the flags and reads the script.
func (c *Camera) Check() (err error) {
	if !c.Enabled() {
		if c.script != "" || c.flags.Changed("for") {
			return exit.Usagef("--script and --for need --out FILE.cast or --out FILE.svg")
		}
		return nil
	}
	if c.cols, c.rows, err = cast.ParseSize(c.size); err != nil {
		return exit.Usagef("--size %w", err)
	}
	switch {
	case c.length <= 0 && c.flags.Changed("for"):
		return exit.Usagef("--for %v: must be more than 0", c.length)
	case c.script == "":
		return nil
	}
	text, err := files.Read(c.script, files.MaxConfig)
	if err != nil {
		return exit.Usagef("read script %s: %w", c.script, err)
	}
	if c.play, err = cast.ParseScript(string(text), ui.KnownKey); err != nil {
		return exit.Usagef("read script %s: %w", c.script, err)
	}
	return nil
}

// CheckNew refuses files that exist: a screen that was recorded live cannot be recorded again.
func (c *Camera) CheckNew() error {
	for _, ending := range []string{files.Cast, files.SVG} {
		info, err := os.Stat(c.out.Name(ending))
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return exit.Usagef("record screen to %s: it exists: choose another name, or remove it", c.out.Name(ending))
		}
	}
	return nil
}

// Shot describes one recording of the screen.
type Shot struct {
	Screen ui.Config
	Wall   time.Time // start
	Until  func(ctx context.Context, at time.Duration) (time.Duration, error)
	Ended  func() bool // nil: ends with the script or the user
}

// Shoot records the screen until it has ended, the script is done, or ctx ends, and prints a line per file. It removes
// the files of a failed recording.
func (c *Camera) Shoot(ctx context.Context, s Shot, notes io.Writer) (err error) {
	opened, outputs, err := c.open(s.Wall)
	if err != nil {
		return err
	}
	s.Screen.Profile, s.Screen.LowBandwidth = theme.TrueColour, false // a file has no bandwidth limit
	opt := cast.Options{
		Every: time.Second / time.Duration(s.Screen.FPS), Script: c.play, For: c.length, Until: s.Until, Ended: s.Ended,
	}
	lasted, err := cast.Shoot(ctx, ui.NewHeadless(s.Screen, c.cols, c.rows), opt, outputs...)
	for _, file := range opened {
		err = errors.Join(err, file.Close())
	}
	for _, file := range opened {
		if err != nil {
			if info, failed := os.Stat(file.Name()); failed == nil && info.Mode().IsRegular() { // not a device or a pipe
				_ = os.Remove(file.Name()) // the first error is returned
			}
			continue
		}
		fmt.Fprintf(notes, "wrote %s: %.1f s of the screen\n", file.Name(), lasted.Seconds())
	}
	return err
}

// open opens the output files.
func (c *Camera) open(wall time.Time) (opened []*os.File, outputs []cast.Output, err error) {
	for _, ending := range []string{files.Cast, files.SVG} {
		path := c.out.Name(ending)
		if path == "" {
			continue
		}
		file, err := files.Create(path, c.out.Text)
		if err != nil {
			for _, open := range opened {
				_ = open.Close()
			}
			return nil, nil, exit.Usagef("record screen: %w", err)
		}
		opened = append(opened, file)
		if ending == files.Cast {
			outputs = append(outputs, cast.NewAsciicast(file, "llmtop", wall))
		} else {
			outputs = append(outputs, cast.NewFilm(file))
		}
	}
	return opened, outputs, nil
}

// live records a screen with live data.
func (c *Camera) live(ctx context.Context, cfg ui.Config) error {
	begin := time.Now()
	until := func(ctx context.Context, at time.Duration) (time.Duration, error) {
		timer := time.NewTimer(at - time.Since(begin))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return time.Since(begin), nil
	}
	return c.Shoot(ctx, Shot{Screen: cfg, Wall: begin, Until: until}, console.Err)
}

// DropCastText removes text from the events of a recorded screen, unless --text is set.
func (v *View) DropCastText(sink event.Sink) event.Sink {
	if v.Camera.Enabled() && !v.Camera.out.Text {
		return event.WithoutText(sink)
	}
	return sink
}
