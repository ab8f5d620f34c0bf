package recording

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// block collects lines until they are written as one frame.
type block struct {
	lines       []byte
	events      int
	first, last event.Time
}

// add appends the line of an event: that of the event protocol, with the time at which the recorder received it and, but
// for the first engine, the number of its engine before the other members. It returns an error, and appends nothing, if
// the event does not fit a line.
func (b *block) add(e *catchup.Entry) error {
	at, from := e.Arrived, len(b.lines)
	out := strconv.AppendInt(append(b.lines, atPrefix...), int64(at), 10)
	if e.Engine != 0 {
		out = strconv.AppendInt(append(out, fromPrefix...), int64(e.Engine), 10)
	}
	comma := len(out)
	out, err := wire.Append(out, &e.Event)
	if err != nil {
		b.lines = out[:from]
		return err
	}
	out[comma] = ','
	b.lines = append(out, '\n')
	if b.events == 0 {
		b.first, b.last = at, at
	}
	b.first, b.last = min(b.first, at), max(b.last, at)
	b.events++
	return nil
}

// reset empties the block and keeps its memory.
func (b *block) reset() { *b = block{lines: b.lines[:0]} }

// The first members of lines: of an event, the time and then the number of its engine; of a note, its type.
var (
	atPrefix   = []byte(`{"at":`)
	fromPrefix = []byte(`,"from":`)
	notePrefix = []byte(`{"recording":"`)
)

// parseLine parses the line of an event. It overwrites a byte of it.
func parseLine(line []byte) (e Entry, ok bool) {
	rest, ok := bytes.CutPrefix(line, atPrefix)
	if !ok {
		return e, false
	}
	at, rest := cutNumber(rest)
	if e.At = event.Time(at); !e.At.Plausible() {
		return e, false
	}
	if after, ok := bytes.CutPrefix(rest, fromPrefix); ok {
		var number int64
		number, rest = cutNumber(after)
		if number < 0 || number >= MaxEngines {
			return e, false
		}
		e.Engine = int(number)
	}
	if len(rest) == 0 || rest[0] != ',' {
		return e, false
	}
	rest[0], e.Line = '{', rest
	return e, true
}

// cutNumber returns the number at the start of b, implausible if there is none, and the rest.
func cutNumber(b []byte) (int64, []byte) {
	n := 0
	for n < len(b) && (b[n] == '-' || b[n] >= '0' && b[n] <= '9') {
		n++
	}
	v, err := strconv.ParseInt(string(b[:n]), 10, 64)
	if err != nil {
		v = -1 << 63
	}
	return v, b[n:]
}

// NoteType is the type of a Note.
type NoteType string

// The types of notes. Readers skip unknown types.
const (
	NoteEngine  NoteType = "engine"  // the name of an engine
	NoteState   NoteType = "state"   // the lines after it, up to the end of the frame, are the state at the start of the segment
	NoteDropped NoteType = "dropped" // the recorder has dropped events
	NoteEnd     NoteType = "end"     // regular end of the segment; a segment without it is torn
)

// Note is a line of the recorder about the recording itself.
type Note struct {
	Type    NoteType          `json:"recording"`
	At      event.Time        `json:"at"`
	Events  uint64            `json:"events,omitempty"`  // recorded since the start of the recording
	Dropped map[string]uint64 `json:"dropped,omitempty"` // events dropped since then, by kind
	Reason  string            `json:"reason,omitempty"`  // NoteEnd: "closed", "rotated", or what failed
	Engine  int               `json:"engine,omitempty"`  // NoteEngine: its number
	EngineEntry
}

// parseNote parses the line of a note; ok is false for other lines.
func parseNote(line []byte) (*Note, bool) {
	if !bytes.HasPrefix(line, notePrefix) {
		return nil, false
	}
	n := new(Note)
	return n, json.Unmarshal(line, n) == nil && n.At.Plausible()
}

// dropsByName returns the drops by kind; kinds without drops are omitted.
func dropsByName(l *event.Drops) map[string]uint64 {
	m := make(map[string]uint64)
	for k, n := range l {
		if n > 0 {
			m[event.Kind(k).String()] = n
		}
	}
	return m
}

// drops is the inverse of dropsByName. Unknown kinds count as log lines, the least important kind, so that no drop is
// hidden.
func (n *Note) drops() (l event.Drops) {
	unknown := maps.Clone(n.Dropped)
	for k := range event.NumKinds {
		l[k] = unknown[k.String()]
		delete(unknown, k.String())
	}
	for _, count := range unknown {
		l[event.KindLog] += count
	}
	return l
}
