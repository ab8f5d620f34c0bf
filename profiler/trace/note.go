package trace

import (
	"encoding/json"
	"maps"

	"github.com/llmtop/llmtop/profiler/event"
)

// NoteType says what a Note is about.
type NoteType string

// The types of notes. A reader passes over those that it does not know.
const (
	NoteLost    NoteType = "lost"    // the recorder has dropped events
	NoteEnd     NoteType = "end"     // the segment ends here as it should; without one it is torn
	NoteSources NoteType = "sources" // what the numbers of sources stand for
)

// Note is what the recorder says about the recording itself.
type Note struct {
	Type   NoteType          `json:"type"`
	Events uint64            `json:"events"`         // recorded since the recording began
	Lost   map[string]uint64 `json:"lost,omitempty"` // events that the recorder dropped since then, by kind
	Why    string            `json:"why,omitempty"`  // NoteEnd: "closed", "rotated", or what failed

	First   int      `json:"first,omitempty"`   // NoteSources: number of the first one
	Sources []Source `json:"sources,omitempty"` // NoteSources
}

// lostNames is what was lost by kind, kinds without loss left out.
func lostNames(l *event.Lost) map[string]uint64 {
	m := make(map[string]uint64)
	for k, n := range l {
		if n > 0 {
			m[event.Kind(k).String()] = n
		}
	}
	return m
}

// lost is the inverse of lostNames. Kinds that this program does not know count with log lines, the kind of least weight, so that no
// loss goes unseen.
func (n *Note) lost() (l event.Lost) {
	left := maps.Clone(n.Lost)
	for k := range event.NumKinds {
		l[k] = left[k.String()]
		delete(left, k.String())
	}
	for _, more := range left {
		l[event.KindLog] += more
	}
	return l
}

// parseNote reads the body of a note.
func parseNote(body []byte) (Note, bool) {
	var n Note
	err := json.Unmarshal(body, &n)
	return n, err == nil
}
