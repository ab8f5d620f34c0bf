package table

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Language is what filters of one kind of rows may say.
type Language[R any] struct {
	Columns []metric.Column
	Example string                                 // for errors and prompts
	Flags   map[string]func(R, event.Time) bool    // words that are conditions of their own
	Word    func(r R, column int) string           // of a column of text
	Value   func(R, int, event.Time) event.Reading // of another column
	Search  func(r R, word string) bool            // for a word that is no flag, in lower case
	Parts   bool                                   // = matches a part of a word
}

// Filter selects rows. The zero value selects all.
type Filter[R any] struct {
	language *Language[R]
	text     string
	terms    []term
}

// term is one condition. A row must meet all of them.
type term struct {
	not    bool
	word   string // to search for, a flag, or to compare a column of text with; lower case
	column int    // -1: none
	metric.Condition
}

// Parse reads a filter: conditions separated by spaces, all of which must hold. A condition compares a column with a
// value (ttft>500ms, group=a, reason!=stop), is a flag of the language, or is text to search for. A leading minus negates
// it. Values with spaces need double quotes. The error describes in one line what is wrong with which condition.
func (l *Language[R]) Parse(text string) (Filter[R], error) {
	f := Filter[R]{language: l, text: strings.TrimSpace(text)}
	words, err := split(f.text)
	if err != nil {
		return Filter[R]{}, err
	}
	for _, w := range words {
		t, err := l.parseTerm(w)
		if err != nil {
			return Filter[R]{}, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// Text returns the filter as typed, "" if it selects all.
func (f *Filter[R]) Text() string { return f.text }

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

func (l *Language[R]) parseTerm(text string) (t term, err error) {
	rest, not := strings.CutPrefix(text, "-")
	t = term{not: not, word: strings.ToLower(rest), column: -1}
	if rest == "" {
		return t, fmt.Errorf("%q is empty: write a condition such as %s", text, l.Example)
	}
	c, compares, err := metric.ParseCondition(rest)
	if !compares {
		if i := l.column(t.word); i >= 0 && l.Flags[t.word] == nil {
			return t, fmt.Errorf("%s is a column: compare it with a value, as in %s", rest, l.Columns[i].Example())
		}
		return t, nil
	}
	if t.column = l.column(c.Name); t.column < 0 {
		return t, fmt.Errorf("unknown column %q: use one of %s", c.Name, l.names())
	}
	if err == nil {
		err = c.Resolve(&l.Columns[t.column])
	}
	t.Condition, t.word = c, strings.ToLower(c.Value)
	return t, err
}

// column returns the column with a name or title, -1 if absent.
func (l *Language[R]) column(name string) int {
	for i := range l.Columns {
		if l.Columns[i].Name == name || l.Columns[i].Title == name {
			return i
		}
	}
	return -1
}

// names returns the names of all columns, for errors.
func (l *Language[R]) names() string {
	var out []string
	for i := range l.Columns {
		out = append(out, l.Columns[i].Name)
	}
	return strings.Join(out, " ")
}

// Match reports whether a row meets all conditions. An absent number meets no comparison, negated or not.
func (f *Filter[R]) Match(r R, now event.Time) bool {
	for i := range f.terms {
		if !f.language.match(&f.terms[i], r, now) {
			return false
		}
	}
	return true
}

func (l *Language[R]) match(t *term, r R, now event.Time) bool {
	switch {
	case t.column < 0:
		if flag := l.Flags[t.word]; flag != nil {
			return flag(r, now) != t.not
		}
		return l.Search(r, t.word) != t.not
	case l.Columns[t.column].Unit == metric.Word:
		word := l.Word(r, t.column)
		same := strings.EqualFold(word, t.word) || l.Parts && strings.Contains(strings.ToLower(word), t.word)
		return (same == (t.Op == "=")) != t.not
	}
	v := l.Value(r, t.column, now)
	return v.OK() && t.Holds(v.V) != t.not
}
