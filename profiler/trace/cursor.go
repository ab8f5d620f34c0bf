package trace

import (
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// Entry is one line of a recording, or a note of its recorder.
type Entry struct {
	At     event.Time // when the recorder received it; of a note, when the frame after it begins
	Source int        // number of the engine that the line is about; 0 where there is only one
	Line   []byte     // valid until the next call; nil for a note
	Note   *Note      // nil for a line
	State  bool       // the line repeats what came before the segment
}

// Cursor walks through the entries of a recording in the order in which they were recorded.
type Cursor struct {
	r    *Recording
	next int // index of the segment after this one
	scan *scanner
	body entries
	kind frameKind
	live bool // the segment continues what has been read: its state is passed over
	gap  bool // segments are missing before this one
	past Damage
}

// Cursor begins to read at the beginning of a segment, counted from 0 among those that are there. The state at its beginning is
// part of what is read; that of the segments after it is not, unless segments are missing before them.
func (r *Recording) Cursor(from int) *Cursor {
	c := &Cursor{r: r, next: from}
	c.turn()
	c.gap = false
	return c
}

// turn goes to the next segment.
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

// Gap reports whether segments are missing between this entry and the one before, once: what comes begins anew with a state.
func (c *Cursor) Gap() bool {
	gap := c.gap
	c.gap = false
	return gap
}

// Damage is what could not be read so far.
func (c *Cursor) Damage() Damage {
	d := c.past
	if c.scan != nil {
		d.add(c.scan.damage)
	}
	return d
}

// Next returns the next entry; io.EOF after the last one. Other errors are of the disk.
func (c *Cursor) Next() (Entry, error) {
	for c.scan != nil {
		if len(c.body.body) > 0 {
			if at, source, line, ok := c.body.next(); ok {
				return Entry{At: at, Source: source, Line: line, State: c.kind == frameState}, nil
			}
			c.scan.damage.Frames++ // checksummed and yet not well formed: no recorder of ours has written it
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
			c.body, c.kind = entries{body, f.first, f.entries, c.r.Several}, f.kind
		}
	}
	return Entry{}, io.EOF
}
