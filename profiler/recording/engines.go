package recording

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// The limits on the engines of a recording.
const (
	MaxEngines = 1 << 12 // engines in a recording; events of others count as dropped
	maxName    = 1 << 10 // bytes of a name
)

// EngineEntry is one of the engines of a recording of several.
type EngineEntry struct {
	Name  string `json:"name,omitempty"`  // unique name, for example its address
	Fleet bool   `json:"fleet,omitempty"` // the fleet itself: shown while there are no other engines
	Local bool   `json:"local,omitempty"` // it ran on the recording machine
}

// AddEngine adds an engine to a recording of several. Events emitted into the returned sink belong to it.
func (r *Recorder) AddEngine(s EngineEntry) event.Sink {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Name = truncateName(s.Name)
	n := len(r.engines)
	if n < MaxEngines {
		r.engines = append(r.engines, s)
	}
	return event.SinkFunc(func(e event.Event) {
		if n >= MaxEngines {
			var drops event.Drops
			drops.Count(e.Kind)
			r.queue.Drop(&drops)
			return
		}
		r.emit(&e, n)
	})
}

// Engine returns an engine of a recording of several. If its name was not recorded, it is named by its number.
func (r *Recording) Engine(number int) EngineEntry {
	if number < len(r.Engines) && r.Engines[number].Name != "" {
		return r.Engines[number]
	}
	return EngineEntry{Name: fmt.Sprint("engine ", number)}
}

// newEngines returns the engines that the recording does not list yet.
func (r *Recorder) newEngines() []EngineEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.engines[len(r.out.engines):])
}

// announceEngines writes the names of new engines before their events.
func (w *writer) announceEngines(more []EngineEntry, at event.Time) error {
	first := len(w.engines)
	w.engines = append(w.engines, more...)
	return w.writeEngines(first, at)
}

// writeEngines writes the names of the engines from number first on; nothing if there are none.
func (w *writer) writeEngines(first int, at event.Time) error {
	var notes []Note
	for n := first; n < len(w.engines); n++ {
		notes = append(notes, Note{Type: NoteEngine, At: at, Engine: n, EngineEntry: w.engines[n]})
	}
	return w.notes(notes)
}

// addEngine adds an engine by its number. The first name of a number counts.
func (r *Recording) addEngine(number int, e EngineEntry) {
	if number < 0 || number >= MaxEngines {
		return
	}
	for len(r.Engines) <= number {
		r.Engines = append(r.Engines, EngineEntry{})
	}
	if e.Name = truncateName(e.Name); r.Engines[number].Name == "" {
		r.Engines[number] = e
	}
}

// truncateName truncates a long name between two characters.
func truncateName(name string) string {
	if len(name) <= maxName {
		return name
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}
