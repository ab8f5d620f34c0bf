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

// camera holds the flags that record the screen: as an asciicast, as an animated SVG, or both.
type camera struct {
	cast   string // path; "": none
	svg    string // path; "": none
	format string
	size   string
	script string // path; "": no input
	length time.Duration
	text   bool

	cols, rows int
	play       *cast.Script
}

func (c *camera) bind(set *pflag.FlagSet) {
	set.StringVar(&c.cast, "cast", "", "record the screen as an asciicast to `FILE` (needs no terminal)")
	set.StringVar(&c.svg, "svg", "", "record the screen as an animated SVG to `FILE` (needs no terminal)")
	set.StringVar(&c.format, "cast-format", "v2", "asciicast `VERSION`: v2 (works in every player) or v3")
	set.StringVar(&c.size, "size", "120x36", "size of the recorded screen, `COLUMNSxROWS`")
	set.StringVar(&c.script, "script", "", "TOML `FILE` with keys, text and waits for the recorded screen")
	set.DurationVar(&c.length, "for", 0, "stop recording the screen after `DURATION`")
	set.BoolVar(&c.text, "cast-text", false, "show prompts and completions in the recorded screen")
}

// enabled reports whether the screen is recorded, which needs no terminal.
func (c *camera) enabled() bool { return c != nil && (c.cast != "" || c.svg != "") }

// check validates the flags and reads the script.
func (c *camera) check() (err error) {
	if !c.enabled() {
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
		return usagef("--cast %s: to record an animated SVG use --svg %s", c.cast, c.cast)
	case c.cast != "" && c.cast == c.svg:
		return usagef("--cast and --svg name the same file")
	case c.script == "":
		return nil
	}
	text, err := readFile(c.script, maxConfigBytes)
	if err != nil {
		return usagef("read script %s: %w", c.script, err)
	}
	if c.play, err = cast.ParseScript(string(text), ui.KnownKey); err != nil {
		return usagef("read script %s: %w", c.script, err)
	}
	return nil
}

// shot describes one recording of the screen.
type shot struct {
	screen ui.Config
	wall   time.Time // start
	until  func(ctx context.Context, at time.Duration) (time.Duration, error)
	ended  func() bool // nil: ends with the script or the user
}

// shoot records the screen until it has ended, the script is done, or ctx ends, and prints a line per file. It removes
// the files of a failed recording.
func (c *camera) shoot(ctx context.Context, s shot, notes io.Writer) (err error) {
	files, outputs, err := c.open(s.wall)
	if err != nil {
		return err
	}
	s.screen.Profile, s.screen.LowBandwidth = theme.TrueColour, false // a file has no bandwidth limit
	opt := cast.Options{
		Every: time.Second / time.Duration(s.screen.FPS), Script: c.play, For: c.length, Until: s.until, Ended: s.ended,
	}
	take, err := cast.Shoot(ctx, ui.NewHeadless(s.screen, c.cols, c.rows), opt, outputs...)
	for _, file := range files {
		err = errors.Join(err, file.Close())
	}
	for _, file := range files {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is returned
			continue
		}
		fmt.Fprintf(notes, "wrote %s: %.1f s of the screen\n", file.Name(), take.Lasted.Seconds())
	}
	return err
}

// open opens the output files.
func (c *camera) open(wall time.Time) (files []*os.File, outputs []cast.Output, err error) {
	version := map[string]int{"v2": cast.V2, "v3": cast.V3}[c.format]
	for _, path := range []string{c.cast, c.svg} {
		if path == "" {
			continue
		}
		file, err := createFile(path, c.text)
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

// live records a screen with live data.
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
	return c.shoot(ctx, shot{screen: cfg, wall: begin, until: until}, consoleErr)
}

// visible reports whether there is a terminal, a reader of plain lines, or a recording to show a screen on.
func (v *view) visible() bool { return v.camera.enabled() || v.live() }

// show shows or records the screen until the user or a signal ends it.
func (v *view) show(ctx context.Context, cfg ui.Config) error {
	if v.camera.enabled() {
		return ignoreClosed(v.camera.live(ctx, cfg))
	}
	return v.open(ctx, cfg)
}

// dropCastText removes text from the events of a recorded screen, unless --cast-text is set.
func (v *view) dropCastText(sink event.Sink) event.Sink {
	if v.camera.enabled() && !v.camera.text {
		return event.WithoutText{Sink: sink}
	}
	return sink
}
