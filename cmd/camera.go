package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/cast"
)

// camera is what a command is told about recording the screen for people, as an asciicast, as a picture that moves, or both.
type camera struct {
	cast   string // path; "": none
	svg    string // path; "": none
	format string
	size   string
	script string // path; "": nothing is done on the screen
	length time.Duration
	text   bool

	cols, rows int
	play       *cast.Script
}

func (c *camera) bind(set *pflag.FlagSet) {
	set.StringVar(&c.cast, "cast", "", "record the screen to this file as an asciicast, with no terminal")
	set.StringVar(&c.svg, "svg", "", "record the screen to this file as an SVG that moves, with no terminal")
	set.StringVar(&c.format, "cast-format", "v2", "version of the asciicast: v2, which every player shows, or v3")
	set.StringVar(&c.size, "size", "120x36", "columns and rows of the screen that is recorded")
	set.StringVar(&c.script, "script", "", "keys, text and waits for the screen that is recorded (TOML)")
	set.DurationVar(&c.length, "for", 0, "record the screen for so long at most")
	set.BoolVar(&c.text, "cast-text", false, "show prompts and completions in it, too")
}

// on reports whether the screen is recorded, and no terminal needed.
func (c *camera) on() bool { return c != nil && (c.cast != "" || c.svg != "") }

// check refuses what cannot be, and reads the script.
func (c *camera) check() (err error) {
	if !c.on() {
		if c.script != "" || c.length != 0 || c.text {
			return usagef("--script, --for and --cast-text need --cast FILE or --svg FILE")
		}
		return nil
	}
	if c.cols, c.rows, err = cast.ParseSize(c.size); err != nil {
		return usagef("--size %w", err)
	}
	switch {
	case c.format != "v2" && c.format != "v3":
		return usagef("--cast-format %q: must be v2 or v3", c.format)
	case c.length < 0:
		return usagef("--for %v: must be more than 0", c.length)
	case strings.EqualFold(filepath.Ext(c.cast), ".svg"):
		return usagef("--cast %s: for a picture that moves: --svg %s", c.cast, c.cast)
	case c.cast != "" && c.cast == c.svg:
		return usagef("--cast and --svg name the same file")
	case c.script == "":
		return nil
	}
	text, err := os.ReadFile(c.script)
	if err != nil {
		return usagef("read script: %w", err)
	}
	if c.play, err = cast.ParseScript(string(text), ui.KnownKey); err != nil {
		return usagef("read script %s: %w", c.script, err)
	}
	return nil
}

// shot is what is recorded.
type shot struct {
	screen ui.Config
	wall   time.Time // when it began
	until  func(ctx context.Context, at time.Duration) (time.Duration, error)
	ended  func() bool // nil: only the script, or the user, knows
}

// shoot records the screen until it has ended, the script is through, or ctx ends, and tells what has become of it. Files of a recording
// that failed are removed.
func (c *camera) shoot(ctx context.Context, s shot, notes io.Writer) (err error) {
	files, outputs, err := c.open(s.wall)
	if err != nil {
		return err
	}
	s.screen.Profile, s.screen.LowBandwidth = theme.TrueColour, false // there is no line to spare
	opt := cast.Options{
		Every: time.Second / time.Duration(s.screen.FPS), Script: c.play, For: c.length, Until: s.until, Ended: s.ended,
	}
	take, err := cast.Shoot(ctx, ui.NewStage(s.screen, c.cols, c.rows), opt, outputs...)
	for _, file := range files {
		err = errors.Join(err, file.Close())
	}
	for _, file := range files {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one that counts
			continue
		}
		fmt.Fprintf(notes, "wrote %s: %.1f s of the screen\n", file.Name(), take.Lasted.Seconds())
	}
	return err
}

// open opens the files before anything is recorded.
func (c *camera) open(wall time.Time) (files []*os.File, outputs []cast.Output, err error) {
	version := map[string]int{"v2": cast.V2, "v3": cast.V3}[c.format]
	for _, path := range []string{c.cast, c.svg} {
		if path == "" {
			continue
		}
		file, err := os.Create(path)
		if err != nil {
			for _, open := range files {
				_ = open.Close()
			}
			return nil, nil, usagef("record screen: %w", err)
		}
		files = append(files, file)
		if path == c.cast {
			outputs = append(outputs, cast.NewAsciicast(file, cast.Header{Version: version, Title: "llmtop", Wall: wall}))
		} else {
			outputs = append(outputs, cast.NewFilm(file))
		}
	}
	return files, outputs, nil
}

// live records a screen that shows what happens now.
func (c *camera) live(ctx context.Context, cfg ui.Config) error {
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
	return c.shoot(ctx, shot{screen: cfg, wall: begin, until: until}, os.Stderr)
}

// visible reports whether there is somebody, or something, to show a screen to.
func (v *view) visible() bool { return v.camera.on() || v.live() }

// show shows the screen, or records it, until the user or a signal ends that.
func (v *view) show(ctx context.Context, cfg ui.Config) error {
	if v.camera.on() {
		return closedInOrder(v.camera.live(ctx, cfg))
	}
	return v.open(ctx, cfg)
}

// hush keeps text out of what a store shows if that is recorded, unless the user has asked for it.
func (v *view) hush(sink event.Sink) event.Sink {
	if v.camera.on() && !v.camera.text {
		return event.WithoutText{Sink: sink}
	}
	return sink
}
