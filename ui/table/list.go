package table

import (
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// List holds the requests of a snapshot that a filter selects, in order, with their totals. Update reuses the memory.
type List struct {
	By     Field
	Down   bool // the largest first
	Filter Filter

	Rows []*store.Request // result of the last Update; owned by the list
	All  int              // requests before the filter
	Sums Sums

	keys       []key
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

// key is the sort key of a row. Values ascend; on a tie the newer request comes first.
type key struct {
	value float64 // negated if the largest comes first; +Inf without a value
	word  string
	nth   int // position, newest first
	row   *store.Request
}

// NewList returns a list of all requests, newest first.
func NewList() *List { return &List{By: Age} }

// Update selects and sorts the requests of a snapshot.
func (l *List) Update(s *store.Snapshot) {
	now := updateKey{s, l.By, l.Down, l.Filter.text}
	if l.lastUpdate == now {
		return
	}
	l.lastUpdate = now
	l.Rows, l.keys, l.All = l.Rows[:0], l.keys[:0], len(s.Requests)+len(s.Past)
	for _, r := range s.Requests {
		l.add(r, s.Now)
	}
	for _, r := range slices.Backward(s.Past) {
		l.add(r, s.Now)
	}
	if l.By.Kind() == Word {
		slices.SortFunc(l.keys, l.compareWords)
	} else {
		slices.SortFunc(l.keys, compareValues)
	}
	for i := range l.keys {
		l.Rows = append(l.Rows, l.keys[i].row)
	}
	l.sum(s.Now)
}

// add adds a request if the filter selects it.
func (l *List) add(r *store.Request, now event.Time) {
	if len(l.Filter.terms) > 0 && !l.Filter.Match(r, now) {
		return
	}
	k := key{row: r, nth: len(l.keys), value: math.Inf(1)}
	if l.By.Kind() == Word {
		k.word = l.By.Text(r)
	} else if v := l.By.Value(r, now); v.OK() {
		k.value = v.V
		if l.Down {
			k.value = -v.V
		}
	}
	l.keys = append(l.keys, k)
}

func compareValues(a, b key) int {
	switch {
	case a.value < b.value:
		return -1
	case a.value > b.value:
		return 1
	}
	return a.nth - b.nth
}

// compareWords puts rows without a word last in both directions.
func (l *List) compareWords(a, b key) int {
	c := strings.Compare(a.word, b.word)
	switch {
	case c == 0:
		return a.nth - b.nth
	case a.word == "" || b.word == "":
		return -c
	case l.Down:
		return -c
	}
	return c
}

// SortBy sorts by a field, or reverses the order if the list is sorted by it already. Numbers start with the largest
// and Age with the smallest, so that the worst or the newest comes first.
func (l *List) SortBy(f Field) {
	if l.By == f {
		l.Down = !l.Down
		return
	}
	l.By, l.Down = f, f.Kind() != Word && f != Age
}

// Key identifies a request within a session. Ids alone may repeat after an engine restart.
type Key struct {
	ID       event.RequestID
	Enqueued event.Time
}

// KeyOf returns the key of a request.
func KeyOf(r *store.Request) Key { return Key{r.ID, r.Enqueued} }

// Index returns the row of a request, -1 if the filter does not select it.
func (l *List) Index(k Key) int {
	return slices.IndexFunc(l.Rows, func(r *store.Request) bool { return r.ID == k.ID && r.Enqueued == k.Enqueued })
}
