package table

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// List holds the rows that a filter selects, in order. It reuses its memory.
type List[R any, F interface {
	~uint8
	Unit() event.Unit
}] struct {
	By     F
	Down   bool // the largest first
	Filter Filter[R]

	Rows []R // owned by the list
	All  int // rows before the filter

	keys []key[R]
}

// key is the sort key of a row. Values ascend; on a tie the row that was added first comes first.
type key[R any] struct {
	value float64 // negated if the largest comes first; +Inf without a value
	word  string
	nth   int
	row   R
}

// clear begins an update.
func (l *List[R, F]) clear() { l.Rows, l.keys, l.All = l.Rows[:0], l.keys[:0], 0 }

// add adds a row if the filter selects it.
func (l *List[R, F]) add(of *Language[R], r R, now event.Time) {
	l.All++
	if !l.Filter.Match(r, now) {
		return
	}
	k := key[R]{row: r, nth: len(l.keys), value: math.Inf(1)}
	if l.By.Unit() == metric.Word {
		k.word = of.Word(r, int(l.By))
	} else if v := of.Value(r, int(l.By), now); v.OK() {
		k.value = v.V
		if l.Down {
			k.value = -v.V
		}
	}
	l.keys = append(l.keys, k)
}

// Update selects and sorts rows.
func (l *List[R, F]) Update(of *Language[R], rows []R) {
	l.clear()
	for _, r := range rows {
		l.add(of, r, 0)
	}
	l.sort()
}

// SortBy sorts by a field, or reverses the order if the list is sorted by it already. Numbers start with the largest.
func (l *List[R, F]) SortBy(f F) {
	if l.By == f {
		l.Down = !l.Down
		return
	}
	l.By, l.Down = f, f.Unit() != metric.Word
}

// sort orders the rows that were added. Those without a value or a word come last in both directions.
func (l *List[R, F]) sort() {
	compare := compareValues[R]
	if l.By.Unit() == metric.Word {
		compare = l.compareWords
	}
	slices.SortFunc(l.keys, compare)
	for i := range l.keys {
		l.Rows = append(l.Rows, l.keys[i].row)
	}
}

func compareValues[R any](a, b key[R]) int {
	switch {
	case a.value < b.value:
		return -1
	case a.value > b.value:
		return 1
	}
	return a.nth - b.nth
}

func (l *List[R, F]) compareWords(a, b key[R]) int {
	c := natural(a.word, b.word)
	switch {
	case c == 0:
		return a.nth - b.nth
	case l.Down || a.word == "" || b.word == "":
		return -c
	}
	return c
}

// natural compares words with the numbers in them as numbers: replica-2 comes before replica-10.
func natural(a, b string) int {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	for same > 0 && isDigit(a[same-1]) { // a number is compared as a whole
		same--
	}
	a, b = a[same:], b[same:]
	for a != "" && b != "" {
		if !isDigit(a[0]) || !isDigit(b[0]) {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := digits(a), digits(b)
		p, q := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digits returns the number of leading digits.
func digits(s string) (n int) {
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
