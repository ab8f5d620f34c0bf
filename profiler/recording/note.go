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
