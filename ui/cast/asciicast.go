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

// Asciicast writes frames as an asciicast of version 2 (https://docs.asciinema.org/manual/asciicast/v2), which every
// player supports, each as the difference from the previous one.
type Asciicast struct {
	out     *bufio.Writer
	title   string
	wall    time.Time // of the first frame
	last    grid.Grid
	skin    *theme.Skin
	started bool
}

// NewAsciicast returns an output to w for frames from the time wall on. It does not close w.
func NewAsciicast(w io.Writer, title string, wall time.Time) *Asciicast {
	return &Asciicast{out: bufio.NewWriter(w), title: title, wall: wall}
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
	return c.wrapError(clean.NewEncoder(c.out).Encode(struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Title     string            `json:"title,omitempty"`
		Env       map[string]string `json:"env"`
	}{2, w, h, c.wall.Unix(), c.title, map[string]string{"TERM": "xterm-256color"}}))
}

// writeEvent writes one event, with its time since the start in whole milliseconds.
func (c *Asciicast) writeEvent(at time.Duration, code, data string) error {
	ms := at.Milliseconds()
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
