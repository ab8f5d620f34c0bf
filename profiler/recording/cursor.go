package recording

import (
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// Entry is a line or a note of a recording.
type Entry struct {
	At     event.Time // when the recorder received the line; for a note, the start of the next frame
	Engine int        // number of the engine; 0 if there is only one
	Line   []byte     // valid until the next call; nil for a note
	Note   *Note      // nil for a line
	State  bool       // the line belongs to the state at the start of a segment
}

// Cursor iterates over the entries of a recording in the order of recording.
type Cursor struct {
	r    *Recording
	next int // index of the next segment
	scan *scanner
	body entries
	kind frameKind
	live bool // the segment continues the previous one: skip its state
	gap  bool // segments are missing before this one
	past Damage
}

// Cursor returns a cursor at the start of a segment, counted from 0 among the segments that exist. It returns the state
// of this segment, and of later segments only if segments are missing before them.
func (r *Recording) Cursor(from int) *Cursor {
	c := &Cursor{r: r, next: from}
	c.turn()
	c.gap = false
	return c
}

// turn moves to the next segment.
func (c *Cursor) turn() bool {
	if c.scan != nil {
		c.past.add(c.scan.damage)
	}
	if c.next >= len(c.r.segments) {
		c.scan = nil
		return false
	}
	s := c.r.segments[c.next]
	c.live = c.scan != nil && s.Segment == c.r.segments[c.next-1].Segment+1
	c.gap = c.gap || !c.live
	c.scan, c.body = c.r.scanner(s), entries{}
	c.next++
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
	if c.scan != nil {
		d.add(c.scan.damage)
	}
	return d
}

// Next returns the next entry; io.EOF after the last one. Other errors are read errors.
func (c *Cursor) Next() (Entry, error) {
	for c.scan != nil {
		if len(c.body.body) > 0 {
			if at, engine, line, ok := c.body.next(); ok {
				return Entry{At: at, Engine: engine, Line: line, State: c.kind == frameState}, nil
			}
			c.scan.damage.Frames++ // the checksum matches but the body is malformed: not written by our recorder
			c.body = entries{}
		}
		f, err := c.scan.next()
		if err == io.EOF {
			c.turn()
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		switch {
		case f.kind == frameNote:
			body, err := c.scan.read(&f)
			if err != nil {
				return Entry{}, err
			}
			if n, ok := parseNote(body); ok {
				return Entry{At: f.first, Note: &n}, nil
			}
		case f.kind == frameEvents, f.kind == frameState && !c.live:
			body, err := c.scan.read(&f)
			if err != nil {
				return Entry{}, err
			}
			c.body, c.kind = entries{body, f.first, f.entries, c.r.MultiEngine}, f.kind
		}
	}
	return Entry{}, io.EOF
}
