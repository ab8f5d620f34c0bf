package cast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// The versions of the asciicast format that can be written.
const (
	V2 = 2 // read by every player
	V3 = 3 // of asciinema 3.0 and later
)

// Header is what an asciicast says of itself.
type Header struct {
	Version int // V2 or V3
	Title   string
	Wall    time.Time // when what is seen began
}

// Asciicast writes frames as an asciicast (https://docs.asciinema.org/manual/asciicast/v2 and v3): of each frame what differs from the
// one before.
type Asciicast struct {
	out    *bufio.Writer
	header Header
	last   grid.Grid
	skin   *theme.Skin
	begun  bool
	at     int64 // ms, of the last event
}

// NewAsciicast makes an output to w, which stays the caller's to close.
func NewAsciicast(w io.Writer, h Header) *Asciicast {
	return &Asciicast{out: bufio.NewWriter(w), header: h}
}

// The sequences around the frames: without a cursor, in no style, and with both as they were at the end.
const (
	hide  = "\x1b[?25l"
	clean = "\x1b[m\x1b[2J"
	bare  = "\x1b[m\x1b[?25h"
)

// Frame implements Output.
func (c *Asciicast) Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error {
	before, prefix := &c.last, ""
	switch {
	case !c.begun:
		c.begun = true
		before, prefix = nil, hide+clean
		if err := c.head(g.W, g.H); err != nil {
			return err
		}
	case before.W != g.W || before.H != g.H:
		before, prefix = nil, clean
		if err := c.event(at, "r", fmt.Sprintf("%dx%d", g.W, g.H)); err != nil {
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
	return c.event(at, "o", prefix+string(changes))
}

// Mark implements Output.
func (c *Asciicast) Mark(at time.Duration, label string) error {
	if !c.begun {
		return nil // nothing has been seen that could be marked
	}
	return c.event(at, "m", label)
}

// Close implements Output. The last frame stays on the screen.
func (c *Asciicast) Close(at time.Duration) error {
	if c.begun {
		if err := c.event(at, "o", fmt.Sprintf("%s\x1b[%d;1H", bare, c.last.H)); err != nil {
			return err
		}
	}
	return c.wrote(c.out.Flush())
}

// head writes the first line.
func (c *Asciicast) head(w, h int) error {
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
	line, err := json.Marshal(header)
	if err != nil {
		return c.wrote(err)
	}
	_, err = c.out.Write(append(line, '\n'))
	return c.wrote(err)
}

// event writes a line: of version 2 with the time since the beginning, of version 3 with that since the line before. Both are in whole
// milliseconds, so that intervals add up.
func (c *Asciicast) event(at time.Duration, code, data string) error {
	now := at.Milliseconds()
	ms := now
	if c.header.Version == V3 {
		ms -= c.at
	}
	c.at = now
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return c.wrote(err)
	}
	_, err := fmt.Fprintf(c.out, "[%d.%03d, %q, %s]\n", ms/1000, ms%1000, code, bytes.TrimSpace(text.Bytes()))
	return c.wrote(err)
}

func (c *Asciicast) wrote(err error) error {
	if err != nil {
		return fmt.Errorf("write asciicast: %w", err)
	}
	return nil
}
