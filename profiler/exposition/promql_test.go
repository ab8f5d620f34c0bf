package exposition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// query is a parsed PromQL expression with the metrics and labels that it uses.
type query struct {
	rest      []string
	selectors []selector
	grouped   []string // labels in by, on and group_left
}

// selector is a metric with the labels of its matchers.
type selector struct {
	metric string
	labels []string
}

// lexeme matches one PromQL token: a string, a duration in brackets, a number, a name or an operator.
var lexeme = regexp.MustCompile(`^\s*("(?:[^"\\]|\\.)*"|\[[0-9]+(?:ms|[smhdwy])\]|[0-9]+(?:\.[0-9]+)?|[a-zA-Z_:][a-zA-Z0-9_:]*|=~|!~|==|!=|>=|<=|[-+*/%(){},=<>])`)

// The PromQL keywords that the dashboard uses; add others when it needs them.
var (
	aggregations = []string{"sum", "topk", "max", "avg"}
	functions    = map[string]int{"rate": 1, "increase": 1, "scalar": 1, "histogram_quantile": 2} // values: number of arguments
	operators    = []string{"+", "-", "*", "/", "%", "==", "!=", ">", "<", ">=", "<="}
)

// parseQuery parses the subset of PromQL that the dashboard uses.
func parseQuery(text string) (q *query, err error) {
	q = &query{}
	for text != "" {
		m := lexeme.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("cannot read %q", text)
		}
		q.rest, text = append(q.rest, m[1]), text[len(m[0]):]
	}
	defer func() {
		if p, ok := recover().(error); ok {
			q, err = nil, p
		}
	}()
	q.expression()
	if len(q.rest) > 0 {
		q.fail("the end")
	}
	return q, nil
}

func (q *query) fail(want string) { panic(fmt.Errorf("%q where %s should be", q.rest, want)) }

// next returns the next token, "" at the end.
func (q *query) next() string {
	if len(q.rest) == 0 {
		return ""
	}
	return q.rest[0]
}

func (q *query) take() string {
	word := q.next()
	if word == "" {
		q.fail("more")
	}
	q.rest = q.rest[1:]
	return word
}

func (q *query) expect(word string) {
	if q.take() != word {
		q.fail(word + " before this")
	}
}

func (q *query) expression() {
	q.operand()
	for slices.Contains(operators, q.next()) {
		q.take()
		if q.next() == "on" {
			q.take()
			q.grouped = append(q.grouped, q.names()...)
			if q.next() == "group_left" {
				q.take()
				q.grouped = append(q.grouped, q.names()...)
			}
		}
		q.operand()
	}
}

func (q *query) operand() {
	word := q.take()
	_, err := strconv.ParseFloat(word, 64)
	arity, function := functions[word]
	switch {
	case err == nil:
	case word == "(":
		q.expression()
		q.expect(")")
	case slices.Contains(aggregations, word):
		if q.next() == "by" {
			q.take()
			q.grouped = append(q.grouped, q.names()...)
		}
		want := 1
		if word == "topk" {
			want = 2
		}
		q.arguments(want)
	case function:
		q.arguments(arity)
	case word[0] == '_' || word[0] >= 'a' && word[0] <= 'z':
		q.selector(word)
	default:
		q.fail("an operand before this")
	}
}

func (q *query) arguments(want int) {
	q.expect("(")
	for i := range want {
		if i > 0 {
			q.expect(",")
		}
		q.expression()
	}
	q.expect(")")
}

// names returns the names between parentheses.
func (q *query) names() (out []string) {
	q.expect("(")
	for q.next() != ")" {
		if len(out) > 0 {
			q.expect(",")
		}
		out = append(out, q.take())
	}
	q.take()
	return out
}

func (q *query) selector(metric string) {
	s := selector{metric: metric}
	if q.next() == "{" {
		q.take()
		for q.next() != "}" {
			if len(s.labels) > 0 {
				q.expect(",")
			}
			s.labels = append(s.labels, q.take())
			if !slices.Contains([]string{"=", "=~", "!=", "!~"}, q.take()) {
				q.fail("a match before this")
			}
			if value := q.take(); value[0] != '"' {
				q.fail("a string before this")
			}
		}
		q.take()
	}
	if word := q.next(); word != "" && word[0] == '[' {
		q.take()
	}
	q.selectors = append(q.selectors, s)
}
