package recording

import (
	"bytes"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// Entry is a line or a note of a recording.
type Entry struct {
	At     event.Time // when the recorder received the line, or wrote the note
	Engine int        // number of the engine; 0 if there is only one
	Line   []byte     // an event of the event protocol, valid until the next call; nil for a note
	Note   *Note      // nil for a line
	State  bool       // the line belongs to the state at the start of a segment
}

// Cursor iterates over the entries of a recording in the order of recording.
type Cursor struct {
	r       *Recording
	segment int // index of the current segment
	frame   int // index of the next frame
	scan    *scanner
	lines   []byte // of the current frame, not yet returned
	state   bool   // they are a state
	live    bool   // the segment continues the previous one: skip its state
	gap     bool   // segments are missing before this one
	past    Damage
}

// Cursor returns a cursor at the start of a segment, counted from 0 among the segments that exist. It returns the state
// of this segment, and of later segments only if segments are missing before them.
func (r *Recording) Cursor(from int) *Cursor {
	return &Cursor{r: r, segment: from, scan: r.scanner(r.segments[from]), past: r.damage}
}

// turn moves to the next segment, if there is one.
func (c *Cursor) turn() bool {
	if c.segment+1 >= len(c.r.segments) {
		return false
	}
	previous, next := c.r.segments[c.segment], c.r.segments[c.segment+1]
	c.live = next.Segment == previous.Segment+1
	c.gap = c.gap || !c.live
	c.past = c.Damage()
	c.segment, c.frame, c.scan, c.lines = c.segment+1, 0, c.r.scanner(next), nil
	return true
}

// Gap reports, once, whether segments are missing before this entry: it starts with the state.
func (c *Cursor) Gap() bool {
	gap := c.gap
	c.gap = false
	return gap
}

// Damage returns the damage found so far.
func (c *Cursor) Damage() Damage {
	d := c.past
	d.Frames += c.scan.damage.Frames
	d.Lines += c.scan.damage.Lines
	return d
}

// Next returns the next entry; io.EOF after the last one. Other errors are read errors.
func (c *Cursor) Next() (Entry, error) {
	for {
		for len(c.lines) > 0 {
			if e, ok := c.line(); ok {
				return e, nil
			}
		}
		frames := c.r.segments[c.segment].frames
		if c.frame == len(frames) {
			if !c.turn() {
				return Entry{}, io.EOF
			}
			continue
		}
		lines, _, err := c.scan.read(frames[c.frame])
		if err != nil {
			return Entry{}, err
		}
		c.lines, c.state = lines, false
		c.frame++
	}
}

// line takes the next line of the frame; ok is false for a line that holds no entry.
func (c *Cursor) line() (e Entry, ok bool) {
	var line []byte
	line, c.lines, _ = bytes.Cut(c.lines, []byte{'\n'})
	if bytes.HasPrefix(line, notePrefix) {
		n, ok := parseNote(line)
		switch {
		case !ok:
			c.scan.damage.Lines++
		case n.Type == NoteState && c.live:
			c.lines = nil
		case n.Type == NoteState:
			c.state = true
		default:
			return Entry{At: n.At, Note: n}, true
		}
		return e, false
	}
	if e, ok = parseLine(line); !ok {
		c.scan.damage.Lines++
	}
	e.State = c.state
	return e, ok
}
