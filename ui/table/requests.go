package table

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Requests holds the requests of a snapshot that a filter selects, in order, with their totals.
type Requests struct {
	List[*store.Request, Field]
	Sums Sums

	samples    []float64
	lastUpdate updateKey
}

// updateKey identifies the input of an update. If it is unchanged, Update does nothing.
type updateKey struct {
	snapshot *store.Snapshot
	by       Field
	down     bool
	text     string
}

// RequestFilters is the language of filters of requests.
var RequestFilters = Language[*store.Request]{
	Columns: fields[:],
	Example: "ttft>500ms group=a failed -cold",
	Flags: map[string]func(*store.Request, event.Time) bool{
		"missed":  Missed,
		"met":     func(r *store.Request, now event.Time) bool { return r.TTFT.OK() && !r.Cold && !Missed(r, now) },
		"cold":    func(r *store.Request, _ event.Time) bool { return r.Cold },
		"warm":    func(r *store.Request, _ event.Time) bool { return !r.Cold },
		"stalled": func(r *store.Request, _ event.Time) bool { return r.StallCount() > 0 },
		"active":  func(r *store.Request, _ event.Time) bool { return !r.State.Final() },
	},
	Word:   func(r *store.Request, column int) string { return Field(column).Text(r) },
	Value:  func(r *store.Request, column int, now event.Time) event.Reading { return Field(column).Value(r, now) },
	Search: matchesText,
}

func init() {
	for s := event.StateQueued; s < event.NumStates; s++ {
		RequestFilters.Flags[s.String()] = func(r *store.Request, _ event.Time) bool { return r.Status() == s.String() }
	}
	RequestFilters.Flags[store.Waiting] = func(r *store.Request, _ event.Time) bool { return r.Status() == store.Waiting }
}

// matchesText reports whether id, group, label, model, reason or the beginning of the prompt of a request match a word.
func matchesText(r *store.Request, word string) bool {
	if idText(r) == word {
		return true
	}
	for _, f := range [...]Field{Group, Label, Model, Reason, Text} {
		if strings.Contains(strings.ToLower(f.Text(r)), word) {
			return true
		}
	}
	return false
}

// NewRequests returns a list of all requests, newest first.
func NewRequests() *Requests { return &Requests{List: List[*store.Request, Field]{By: Age}} }

// Update selects and sorts the requests of a snapshot. On a tie the newer request comes first.
func (l *Requests) Update(s *store.Snapshot) {
	now := updateKey{s, l.By, l.Down, l.Filter.text}
	if l.lastUpdate == now {
		return
	}
	l.lastUpdate = now
	l.clear()
	for _, r := range s.Requests {
		l.add(&RequestFilters, r, s.Now)
	}
	for _, r := range slices.Backward(s.Earlier) {
		l.add(&RequestFilters, r, s.Now)
	}
	l.sort()
	l.sum(s.Now)
}

// SortBy is that of List, but Age starts with the smallest, so that the newest comes first.
func (l *Requests) SortBy(f Field) {
	again := l.By == f
	if l.List.SortBy(f); f == Age && !again {
		l.Down = false
	}
}

// Key identifies a request within a session. Ids alone may repeat after an engine restart.
type Key struct {
	ID       event.RequestID
	Enqueued event.Time
}

// KeyOf returns the key of a request.
func KeyOf(r *store.Request) Key { return Key{r.ID, r.Enqueued} }

// Index returns the row of a request, -1 if the filter does not select it.
func (l *Requests) Index(k Key) int {
	return slices.IndexFunc(l.Rows, func(r *store.Request) bool { return r.ID == k.ID && r.Enqueued == k.Enqueued })
}
