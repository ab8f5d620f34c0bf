package table

import (
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// List is the requests of a snapshot that a filter chooses, in order, with their sums. Update reuses what it has.
type List struct {
	By     Field
	Down   bool // the largest first
	Filter Filter

	Rows []*store.Request // as of the last Update; the list's own
	All  int              // requests before the filter
	Sums Sums

	keys    []key
	samples []float64
	done    made
}

// made is what an update was made of: nothing else needs another one.
type made struct {
	of   *store.Snapshot
	by   Field
	down bool
	text string
}

// key is what a row is sorted by: ascending values, and of equals the newer first.
type key struct {
	value float64 // negative where the largest comes first; +Inf where there is none
	word  string
	nth   int // from the newest on
	row   *store.Request
}

// NewList makes a list of all requests, the newest first.
func NewList() *List { return &List{By: Age} }

// Update takes the requests of a snapshot.
func (l *List) Update(s *store.Snapshot) {
	now := made{s, l.By, l.Down, l.Filter.text}
	if l.done == now {
		return
	}
	l.done = now
	l.Rows, l.keys, l.All = l.Rows[:0], l.keys[:0], len(s.Requests)+len(s.Past)
	for _, r := range s.Requests {
		l.take(r, s.Now)
	}
	for _, r := range slices.Backward(s.Past) {
		l.take(r, s.Now)
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

// take adds a request if the filter chooses it.
func (l *List) take(r *store.Request, now event.Time) {
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

// compareWords puts rows without a word last, whatever the order.
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

// SortBy sorts by a field, or turns the order round if the list is sorted by it already. Numbers begin with the largest, but for the
// age: what is worst, or newest, comes first.
func (l *List) SortBy(f Field) {
	if l.By == f {
		l.Down = !l.Down
		return
	}
	l.By, l.Down = f, f.Kind() != Word && f != Age
}

// Key names a request within a session: ids may come again when an engine begins anew.
type Key struct {
	ID       event.RequestID
	Enqueued event.Time
}

// KeyOf is the key of a request.
func KeyOf(r *store.Request) Key { return Key{r.ID, r.Enqueued} }

// Index is the row of a request, -1 if the filter does not choose it.
func (l *List) Index(k Key) int {
	return slices.IndexFunc(l.Rows, func(r *store.Request) bool { return r.ID == k.ID && r.Enqueued == k.Enqueued })
}
