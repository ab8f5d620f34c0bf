package recording

import (
	"encoding/json"
	"maps"

	"github.com/llmtop/llmtop/profiler/event"
)

// NoteType is the type of a Note.
type NoteType string

// The types of notes. Readers skip unknown types.
const (
	NoteDropped NoteType = "lost"    // the recorder has dropped events
	NoteEnd     NoteType = "end"     // regular end of the segment; a segment without it is torn
	NoteEngines NoteType = "sources" // names of the engine numbers
)

// Note is a message of the recorder about the recording itself.
type Note struct {
	Type    NoteType          `json:"type"`
	Events  uint64            `json:"events"`         // recorded since the start of the recording
	Dropped map[string]uint64 `json:"lost,omitempty"` // events dropped since then, by kind
	Reason  string            `json:"why,omitempty"`  // NoteEnd: "closed", "rotated", or what failed

	First   int           `json:"first,omitempty"`   // NoteEngines: number of the first one
	Engines []EngineEntry `json:"sources,omitempty"` // NoteEngines
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

// parseNote parses the body of a note.
func parseNote(body []byte) (Note, bool) {
	var n Note
	err := json.Unmarshal(body, &n)
	return n, err == nil
}

// dropMerger adds the recorder's drops to those that the engine reports, so that the screen shows the sum.
type dropMerger struct {
	engine, recorder event.Drops
}

// note applies a note and reports whether the drops have changed.
func (l *dropMerger) note(n *Note) bool {
	drops := n.drops()
	if drops == l.recorder || drops.Total() < l.recorder.Total() {
		return false
	}
	l.recorder = drops
	return true
}

// report returns an event with all drops.
func (l *dropMerger) report(at event.Time) event.Event {
	return event.Event{Kind: event.KindDrops, Layer: -1, At: at, Data: l.sum()}
}

// event returns an event with the recorder's drops added to those of the engine.
func (l *dropMerger) event(e event.Event) event.Event {
	if e.Kind != event.KindDrops {
		return e
	}
	if p, ok := e.Data.(*event.Drops); ok && p != nil {
		l.engine = *p
		e.Data = l.sum()
	}
	return e
}

func (l *dropMerger) sum() *event.Drops {
	sum := l.engine
	for k, n := range l.recorder {
		sum[k] += n
	}
	return &sum
}
