package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/fleet"
)

// Replicas holds the replicas of a fleet that a filter selects, in order.
type Replicas struct {
	By     fleet.Field
	Down   bool // the largest first
	Filter ReplicaFilter

	Rows []*fleet.Replica // result of the last Update
	All  int              // replicas before the filter
}

// Update selects and sorts replicas. Those without a value in the sorted field come last.
func (l *Replicas) Update(all []*fleet.Replica) {
	l.All, l.Rows = len(all), l.Rows[:0]
	for _, r := range all {
		if l.Filter.Match(r) {
			l.Rows = append(l.Rows, r)
		}
	}
	sign := 1
	if l.Down {
		sign = -1
	}
	slices.SortStableFunc(l.Rows, func(a, b *fleet.Replica) int {
		if l.By.Kind() == fleet.Word {
			return sign * natural(a.Word(l.By), b.Word(l.By))
		}
		x, y := a.Cells[l.By], b.Cells[l.By]
		switch {
		case !x.OK() || !y.OK():
			return cmp.Compare(b2i(!x.OK()), b2i(!y.OK()))
		default:
			return sign * cmp.Compare(x.V, y.V)
		}
	})
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SortBy sorts by a field, or reverses the order if the list is sorted by it already. Numbers start with the largest.
func (l *Replicas) SortBy(f fleet.Field) {
	if l.By == f {
		l.Down = !l.Down
		return
	}
	l.By, l.Down = f, f.Kind() != fleet.Word
}

// ReplicaFilter selects replicas. The zero value selects all.
type ReplicaFilter struct {
	text  string
	terms []replicaTerm
}

// replicaTerm is one condition. A replica must meet all of them.
type replicaTerm struct {
	not   bool
	word  string // text to search for where op is ""; lower case
	field fleet.Field
	op    string
	value float64
}

// ReplicaSyntax is an example of the filter language, for errors and prompts.
const ReplicaSyntax = "ttft>500ms model=llama waiting>4 -idle"

// replicaKinds maps the kinds of a fleet's fields to those of request filters.
var replicaKinds = map[fleet.Kind]Kind{fleet.Word: Word, fleet.Count: Count, fleet.Share: Count, fleet.Speed: Speed, fleet.Time: Time, fleet.Elapsed: Time}

// ParseReplicas reads a filter: conditions separated by spaces, all of which must hold. A condition compares a field
// with a value (ttft>500ms, kv>0.9, model=llama) or is text to search for in name, state and model. A leading minus
// negates it. The error describes in one line what is wrong.
func ParseReplicas(text string) (ReplicaFilter, error) {
	f := ReplicaFilter{text: strings.TrimSpace(text)}
	words, err := split(f.text)
	if err != nil {
		return ReplicaFilter{}, err
	}
	for _, w := range words {
		t, err := parseReplicaTerm(w)
		if err != nil {
			return ReplicaFilter{}, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// Text returns the filter as typed, "" if it selects all.
func (f *ReplicaFilter) Text() string { return f.text }

func parseReplicaTerm(word string) (t replicaTerm, err error) {
	rest, not := strings.CutPrefix(word, "-")
	t = replicaTerm{not: not, word: strings.ToLower(rest)}
	if rest == "" {
		return t, fmt.Errorf("%q is empty: write a condition such as %s", word, ReplicaSyntax)
	}
	i := strings.IndexAny(rest, "=<>")
	if i < 0 {
		return t, nil
	}
	if i > 0 && rest[i-1] == '!' {
		i--
	}
	f, ok := fleet.ByName(strings.ToLower(rest[:i]))
	if !ok {
		return t, fmt.Errorf("unknown column %q: use one of %s", rest[:i], replicaFieldNames())
	}
	t.field = f
	tail := rest[i:]
	for _, op := range ops {
		value, ok := strings.CutPrefix(tail, op)
		if !ok {
			continue
		}
		t.op, t.word = op, strings.ToLower(value)
		kind := replicaKinds[f.Kind()]
		if kind == Word {
			if op != "=" && op != "!=" {
				return t, fmt.Errorf("%s is a word: compare it with = or !=", f)
			}
			return t, nil
		}
		if t.value, ok = quantity(kind, value); !ok {
			return t, fmt.Errorf("cannot compare %s with %q: write a value such as %s", f, value, ReplicaSyntax)
		}
		return t, nil
	}
	return t, fmt.Errorf("unknown comparison %q: use one of %s", tail, strings.Join(ops, " "))
}

func replicaFieldNames() string {
	var out []string
	for f := range fleet.NumFields {
		out = append(out, f.String())
	}
	return strings.Join(out, " ")
}

// Match reports whether a replica meets all conditions. An absent number meets no comparison, negated or not. Words
// match by substring: model=llama matches every llama.
func (f *ReplicaFilter) Match(r *fleet.Replica) bool {
	for i := range f.terms {
		if !f.terms[i].match(r) {
			return false
		}
	}
	return true
}

func (t *replicaTerm) match(r *fleet.Replica) bool {
	holds := func(f fleet.Field) bool { return strings.Contains(strings.ToLower(r.Word(f)), t.word) }
	switch {
	case t.op == "":
		return (holds(fleet.Name) || holds(fleet.State) || holds(fleet.Model)) != t.not
	case t.field.Kind() == fleet.Word:
		return (holds(t.field) == (t.op == "=")) != t.not
	}
	v := r.Cells[t.field]
	return v.OK() && compare(v.V, t.op, t.value) != t.not
}
