package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Filter chooses requests. Its zero value chooses all.
type Filter struct {
	text  string
	terms []term
}

// term is one condition; a request must meet all of them.
type term struct {
	not   bool
	word  string // a flag, or text to search for where field is NumFields; lower case
	field Field
	op    string
	value float64
}

// Syntax is the filter's language in one line, for errors and prompts.
const Syntax = "ttft>500ms group=a failed -cold"

// flags are words that stand for a condition of their own.
var flags = map[string]func(*store.Request, event.Time) bool{
	"missed":  Missed,
	"met":     func(r *store.Request, now event.Time) bool { return r.TTFT.OK() && !r.Cold && !Missed(r, now) },
	"cold":    func(r *store.Request, _ event.Time) bool { return r.Cold },
	"warm":    func(r *store.Request, _ event.Time) bool { return !r.Cold },
	"stalled": func(r *store.Request, _ event.Time) bool { return len(r.Stalls) > 0 },
	"active":  func(r *store.Request, _ event.Time) bool { return !r.State.Final() },
}

func init() {
	for s := event.StateQueued; s < event.NumStates; s++ {
		flags[s.String()] = func(r *store.Request, _ event.Time) bool { return r.State == s }
	}
}

// Flags are the words that stand for a condition, sorted.
func Flags() (out []string) {
	for f := range flags {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// ops are the comparisons, the longer ones first.
var ops = []string{"!=", ">=", "<=", "=", ">", "<"}

// Parse reads a filter: conditions with spaces between them, all of which must hold. A condition compares a field with a value
// (ttft>500ms, group=a, reason!=stop), is one of Flags, or is text to find in id, group, label or reason; a minus before it turns it round.
// Values with spaces go in double quotes. The error says in one line what is wrong with which condition.
func Parse(text string) (Filter, error) {
	f := Filter{text: strings.TrimSpace(text)}
	words, err := split(f.text)
	if err != nil {
		return Filter{}, err
	}
	for _, w := range words {
		t, err := parseTerm(w)
		if err != nil {
			return Filter{}, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// Text is the filter as it was typed, "" if it chooses all.
func (f *Filter) Text() string { return f.text }

// split cuts text at spaces outside of quotes and takes the quotes off.
func split(text string) (out []string, err error) {
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range text {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case unicode.IsSpace(r) && !quoted:
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quoted {
		return nil, fmt.Errorf(`a quote is open: close it with "`)
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}

func parseTerm(word string) (t term, err error) {
	rest, not := strings.CutPrefix(word, "-")
	t = term{not: not, word: strings.ToLower(rest), field: NumFields}
	if rest == "" {
		return t, fmt.Errorf("%q says nothing: want something like %s", word, Syntax)
	}
	i := strings.IndexAny(rest, "=<>")
	if i < 0 {
		if f, ok := byName(t.word); ok {
			return t, fmt.Errorf("%s is a column: compare it, as in %s", rest, f.Example())
		}
		return t, nil
	}
	if i > 0 && rest[i-1] == '!' {
		i--
	}
	name, tail := strings.ToLower(rest[:i]), rest[i:]
	f, ok := byName(name)
	if !ok {
		return t, fmt.Errorf("there is no column %q: there are %s", rest[:i], names())
	}
	for _, op := range ops {
		if value, ok := strings.CutPrefix(tail, op); ok {
			t.field, t.op = f, op
			return t, t.parseValue(value)
		}
	}
	return t, fmt.Errorf("%q is no comparison: want one of %s", tail, strings.Join(ops, " "))
}

// names are the names of all fields, for errors.
func names() string {
	var out []string
	for f := range NumFields {
		out = append(out, f.String())
	}
	return strings.Join(out, " ")
}

// Example is a comparison of the field.
func (f Field) Example() string {
	return f.String() + [...]string{Word: "=word", Count: ">100", Time: ">500ms", Speed: "<20"}[f.Kind()]
}

// units are the units of times, in s.
var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}

// parseValue reads what a field is compared with, in the field's unit.
func (t *term) parseValue(s string) error {
	if t.field.Kind() == Word {
		if t.op != "=" && t.op != "!=" {
			return fmt.Errorf("%s is a word: compare it with = or !=", t.field)
		}
		t.word = strings.ToLower(s)
		return nil
	}
	v, ok := quantity(t.field.Kind(), s)
	if !ok {
		return fmt.Errorf("%s is compared with %q: want something like %s", t.field, s, t.field.Example())
	}
	t.value = v
	return nil
}

// quantity reads a number with its unit: a time as s; false if it is none of its kind.
func quantity(kind Kind, s string) (float64, bool) {
	digits := strings.TrimLeft(s, "+-.0123456789")
	v, err := strconv.ParseFloat(s[:len(s)-len(digits)], 64)
	factor, known := 1.0, digits == ""
	switch {
	case kind == Time:
		factor, known = units[strings.ToLower(digits)], units[strings.ToLower(digits)] > 0
	case strings.EqualFold(digits, "k"):
		factor, known = 1e3, true
	case strings.EqualFold(digits, "M"):
		factor, known = 1e6, true
	}
	v *= factor
	return v, err == nil && known && !math.IsInf(v, 0)
}

// Match reports whether a request meets all conditions. An absent number meets no comparison, and so no comparison turned round, too.
func (f *Filter) Match(r *store.Request, now event.Time) bool {
	for i := range f.terms {
		if !f.terms[i].match(r, now) {
			return false
		}
	}
	return true
}

func (t *term) match(r *store.Request, now event.Time) bool {
	switch {
	case t.field < NumFields && t.field.Kind() == Word:
		return (strings.EqualFold(t.field.Text(r), t.word) == (t.op == "=")) != t.not
	case t.field < NumFields:
		v := t.field.Value(r, now)
		return v.OK() && compare(v.V, t.op, t.value) != t.not
	}
	if flag := flags[t.word]; flag != nil {
		return flag(r, now) != t.not
	}
	return t.found(r) != t.not
}

// found reports whether a request has the text that is searched for.
func (t *term) found(r *store.Request) bool {
	if number(r) == t.word {
		return true
	}
	for _, f := range [...]Field{Group, Label, Reason} {
		if strings.Contains(strings.ToLower(f.Text(r)), t.word) {
			return true
		}
	}
	return false
}

func compare(v float64, op string, to float64) bool {
	switch op {
	case ">":
		return v > to
	case "<":
		return v < to
	case ">=":
		return v >= to
	case "<=":
		return v <= to
	case "!=":
		return v != to
	}
	return v == to
}
