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

// Filter selects requests. The zero value selects all.
type Filter struct {
	text  string
	terms []term
}

// term is one condition. A request must meet all of them.
type term struct {
	not   bool
	word  string // a flag, or text to search for where field is NumFields; lower case
	field Field
	op    string
	value float64
}

// Syntax is an example of the filter language, for errors and prompts.
const Syntax = "ttft>500ms group=a failed -cold"

// flags are words that are conditions of their own.
var flags = map[string]func(*store.Request, event.Time) bool{
	"missed":  Missed,
	"met":     func(r *store.Request, now event.Time) bool { return r.TTFT.OK() && !r.Cold && !Missed(r, now) },
	"cold":    func(r *store.Request, _ event.Time) bool { return r.Cold },
	"warm":    func(r *store.Request, _ event.Time) bool { return !r.Cold },
	"stalled": func(r *store.Request, _ event.Time) bool { return r.StallCount() > 0 },
	"active":  func(r *store.Request, _ event.Time) bool { return !r.State.Final() },
}

func init() {
	for s := event.StateQueued; s < event.NumStates; s++ {
		flags[s.String()] = func(r *store.Request, _ event.Time) bool { return r.State == s }
	}
}

// Flags returns the flag words, sorted.
func Flags() (out []string) {
	for f := range flags {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// ops are the comparison operators. Operators that contain others come first.
var ops = []string{"!=", ">=", "<=", "=", ">", "<"}

// Parse reads a filter: conditions separated by spaces, all of which must hold. A condition compares a field with a
// value (ttft>500ms, group=a, reason!=stop), is one of Flags, or is text to search for in id, group, label, model and
// reason. A leading minus negates it. Values with spaces need double quotes. The error describes in one line what is
// wrong with which condition.
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

// Text returns the filter as typed, "" if it selects all.
func (f *Filter) Text() string { return f.text }

// split cuts text at spaces outside of quotes and removes the quotes.
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
		return nil, fmt.Errorf(`unclosed quote: close it with "`)
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
		return t, fmt.Errorf("%q is empty: write a condition such as %s", word, Syntax)
	}
	i := strings.IndexAny(rest, "=<>")
	if i < 0 {
		if f, ok := byName(t.word); ok {
			return t, fmt.Errorf("%s is a column: compare it with a value, as in %s", rest, f.Example())
		}
		return t, nil
	}
	if i > 0 && rest[i-1] == '!' {
		i--
	}
	name, tail := strings.ToLower(rest[:i]), rest[i:]
	f, ok := byName(name)
	if !ok {
		return t, fmt.Errorf("unknown column %q: use one of %s", rest[:i], fieldNames())
	}
	for _, op := range ops {
		if value, ok := strings.CutPrefix(tail, op); ok {
			t.field, t.op = f, op
			return t, t.parseValue(value)
		}
	}
	return t, fmt.Errorf("unknown comparison %q: use one of %s", tail, strings.Join(ops, " "))
}

// fieldNames returns the names of all fields, for errors.
func fieldNames() string {
	var out []string
	for f := range NumFields {
		out = append(out, f.String())
	}
	return strings.Join(out, " ")
}

// Example returns a comparison with the field.
func (f Field) Example() string {
	return f.String() + [...]string{Word: "=word", Count: ">100", Time: ">500ms", Speed: "<20"}[f.Kind()]
}

// units maps units of time to s.
var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}

// parseValue reads the value of a comparison in the field's unit.
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
		return fmt.Errorf("cannot compare %s with %q: write a value such as %s", t.field, s, t.field.Example())
	}
	t.value = v
	return nil
}

// quantity reads a number with its unit, times in s. It returns false if s is not a value of this kind.
func quantity(kind Kind, s string) (float64, bool) {
	digits := strings.TrimLeft(s, "+-.0123456789")
	v, err := strconv.ParseFloat(s[:len(s)-len(digits)], 64)
	factor, valid := 1.0, digits == ""
	switch {
	case kind == Time:
		factor, valid = units[strings.ToLower(digits)], units[strings.ToLower(digits)] > 0
	case strings.EqualFold(digits, "k"):
		factor, valid = 1e3, true
	case strings.EqualFold(digits, "M"):
		factor, valid = 1e6, true
	}
	v *= factor
	return v, err == nil && valid && !math.IsInf(v, 0)
}

// Match reports whether a request meets all conditions. An absent number meets no comparison, negated or not.
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
	return t.matchesText(r) != t.not
}

// matchesText reports whether id, group, label, model, reason or the beginning of the prompt of a request match the searched text.
func (t *term) matchesText(r *store.Request) bool {
	if idText(r) == t.word {
		return true
	}
	for _, f := range [...]Field{Group, Label, Model, Reason, Text} {
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
