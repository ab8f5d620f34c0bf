package trace

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of the sources of a recording.
const (
	MaxSources = 1 << 12 // engines in a recording; what comes of those beyond counts as lost
	maxName    = 1 << 10 // bytes of a name
)

// Source is one of the engines that a recording of several is about.
type Source struct {
	Name  string `json:"name"`            // tells it from the others, for example its address
	Fleet bool   `json:"fleet,omitempty"` // it is what tells of the others: it is on show while there are none
}

// Source adds an engine to a recording of several. What is emitted into the sink is about it.
func (r *Recorder) Source(s Source) event.Sink {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Name = clip(s.Name)
	n := len(r.sources)
	if n < MaxSources {
		r.sources = append(r.sources, s)
	}
	return sourceSink{r, n}
}

// sourceSink is where the events of a source go.
type sourceSink struct {
	*Recorder
	number int
}

// Emit implements event.Sink.
func (s sourceSink) Emit(e event.Event) {
	if s.number >= MaxSources {
		var lost event.Lost
		count(&lost, e.Kind)
		s.queue.drop(&lost)
		return
	}
	s.queue.emit(&e, s.number)
}

// Source is one of the engines of a recording of several. One of which the name is lost is called by its number.
func (r *Recording) Source(number int) Source {
	if number < len(r.Sources) && r.Sources[number].Name != "" {
		return r.Sources[number]
	}
	return Source{Name: fmt.Sprint("source ", number)}
}

// newSources are those that the recording does not tell of yet.
func (r *Recorder) newSources() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sources[len(r.out.sources):])
}

// introduce tells of new sources, before what they have emitted.
func (w *writer) introduce(more []Source, at event.Time) error {
	first := len(w.sources)
	w.sources = append(w.sources, more...)
	return w.tell(first, more, at)
}

// tell writes what the numbers of some sources stand for, nothing if there are none.
func (w *writer) tell(first int, some []Source, at event.Time) error {
	if len(some) == 0 {
		return nil
	}
	return w.note(&Note{Type: NoteSources, First: first, Sources: some}, at)
}

// learn adds to the sources of a recording what a note says of them. The first name of a number counts.
func learn(known []Source, n *Note) []Source {
	for i, s := range n.Sources {
		at := n.First + i
		if n.First < 0 || at >= MaxSources {
			break
		}
		for len(known) <= at {
			known = append(known, Source{})
		}
		if known[at].Name == "" {
			known[at] = Source{Name: strings.Clone(clip(s.Name)), Fleet: s.Fleet}
		}
	}
	return known
}

// clip cuts a name that is too long between two characters.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}
