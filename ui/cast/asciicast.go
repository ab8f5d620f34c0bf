package cast

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// The versions of the asciicast format that can be written.
const (
	V2 = 2 // supported by every player
	V3 = 3 // needs asciinema 3.0 or later
)

// Header is the metadata of an asciicast.
type Header struct {
	Version int // V2 or V3
	Title   string
	Wall    time.Time // wall-clock time of the first frame
}

// Asciicast writes frames as an asciicast (https://docs.asciinema.org/manual/asciicast/v2 and v3), each as the
// difference from the previous one.
type Asciicast struct {
	out     *bufio.Writer
	header  Header
	last    grid.Grid
	skin    *theme.Skin
	started bool
	at      int64 // time of the last event, ms
}

// NewAsciicast returns an output to w. It does not close w.
func NewAsciicast(w io.Writer, h Header) *Asciicast {
	return &Asciicast{out: bufio.NewWriter(w), header: h}
}

// Escape sequences before the first frame and after the last one: hide the cursor, clear the screen, restore.
const (
	hide        = "\x1b[?25l"
	clearScreen = "\x1b[m\x1b[2J"
	bare        = "\x1b[m\x1b[?25h"
)

// Frame implements Output.
func (c *Asciicast) Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error {
	before, prefix := &c.last, ""
	switch {
	case !c.started:
		c.started = true
		before, prefix = nil, hide+clearScreen
		if err := c.writeHeader(g.W, g.H); err != nil {
			return err
		}
	case before.W != g.W || before.H != g.H:
		before, prefix = nil, clearScreen
		if err := c.writeEvent(at, "r", fmt.Sprintf("%dx%d", g.W, g.H)); err != nil {
			return err
		}
	case skin != c.skin: // other colours
		before = nil
	}
	changes := g.Changes(before, skin)
	c.last.Copy(g)
	c.skin = skin
	if len(changes) == 0 {
		return nil
	}
	return c.writeEvent(at, "o", prefix+string(changes))
}

// Mark implements Output.
func (c *Asciicast) Mark(at time.Duration, label string) error {
	if !c.started {
		return nil // nothing to mark before the first frame
	}
	return c.writeEvent(at, "m", label)
}

// Close implements Output. The last frame stays on the screen.
func (c *Asciicast) Close(at time.Duration) error {
	if c.started {
		if err := c.writeEvent(at, "o", fmt.Sprintf("%s\x1b[%d;1H", bare, c.last.H)); err != nil {
			return err
		}
	}
	return c.wrapError(c.out.Flush())
}

// writeHeader writes the first line.
func (c *Asciicast) writeHeader(w, h int) error {
	env := map[string]string{"TERM": "xterm-256color"}
	header := any(struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Title     string            `json:"title,omitempty"`
		Env       map[string]string `json:"env"`
	}{V2, w, h, c.header.Wall.Unix(), c.header.Title, env})
	if c.header.Version == V3 {
		type term struct {
			Cols int    `json:"cols"`
			Rows int    `json:"rows"`
			Type string `json:"type"`
		}
		header = struct {
			Version   int    `json:"version"`
			Term      term   `json:"term"`
			Timestamp int64  `json:"timestamp"`
			Title     string `json:"title,omitempty"`
		}{V3, term{w, h, env["TERM"]}, c.header.Wall.Unix(), c.header.Title}
	}
	return c.wrapError(clean.NewEncoder(c.out).Encode(header))
}

// writeEvent writes one event. Version 2 has the time since the start, version 3 the time since the previous event.
// Both are rounded to whole milliseconds so that intervals add up.
func (c *Asciicast) writeEvent(at time.Duration, code, data string) error {
	now := at.Milliseconds()
	ms := now
	if c.header.Version == V3 {
		ms -= c.at
	}
	c.at = now
	var text bytes.Buffer
	if err := clean.NewEncoder(&text).Encode(data); err != nil {
		return c.wrapError(err)
	}
	_, err := fmt.Fprintf(c.out, "[%d.%03d, %q, %s]\n", ms/1000, ms%1000, code, bytes.TrimSpace(text.Bytes()))
	return c.wrapError(err)
}

func (c *Asciicast) wrapError(err error) error {
	if err != nil {
		return fmt.Errorf("write asciicast: %w", err)
	}
	return nil
}
