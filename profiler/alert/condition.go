package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Limits of what is parsed.
const (
	mostText  = 500 // bytes of a condition
	mostTerms = 8
)

// condition is what a rule waits for: all of its terms at once.
type condition []term

// term holds one measure against a limit.
type term struct {
	of    *measure
	op    string // >, >=, <, <=
	limit float64
}

// parseCondition reads terms with "and" between them, for example "ttft_p99 > 500ms and running >= 4".
func parseCondition(text string) (c condition, err error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, fmt.Errorf("empty: a condition is for example %q", "ttft_p99 > 500ms")
	case len(text) > mostText:
		return nil, fmt.Errorf("longer than %d characters", mostText)
	}
	words := split(text)
	for {
		if len(words) < 3 {
			return nil, fmt.Errorf("%.60q: a condition is a measure, one of > >= < <=, and a limit, as in %q", strings.Join(words, " "), "ttft_p99 > 500ms")
		}
		t, err := parseTerm(words[0], words[1], words[2])
		if err != nil {
			return nil, err
		}
		c = append(c, t)
		switch words = words[3:]; {
		case len(words) == 0:
			return c, nil
		case !strings.EqualFold(words[0], "and"):
			return nil, fmt.Errorf("%.40q: after a limit comes the end, or \"and\" and another condition", words[0])
		case len(c) == mostTerms:
			return nil, fmt.Errorf("more than %d conditions", mostTerms)
		}
		words = words[1:]
	}
}

// split cuts a text into words and comparisons; "> 5 %" is as good as ">5%".
func split(text string) (words []string) {
	const comparisons = "<>="
	for _, field := range strings.Fields(text) {
		for field != "" {
			n := strings.IndexAny(field, comparisons)
			switch {
			case n < 0:
				n = len(field)
			case n == 0:
				n = len(field) - len(strings.TrimLeft(field, comparisons))
			}
			words = append(words, field[:n])
			field = field[n:]
		}
	}
	for i := len(words) - 1; i > 0; i-- { // a unit belongs to its number
		if _, known := units[strings.ToLower(words[i])]; known && isNumber(words[i-1]) {
			words = append(append(words[:i-1:i-1], words[i-1]+words[i]), words[i+1:]...)
		}
	}
	return words
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func parseTerm(name, op, limit string) (t term, err error) {
	if t.of = byName(name); t.of == nil {
		return t, fmt.Errorf("unknown measure %.40q; known: %s", name, names())
	}
	switch op {
	case ">", ">=", "<", "<=":
		t.op = op
	default:
		return t, fmt.Errorf("%.10q: a comparison is one of > >= < <=", op)
	}
	t.limit, err = parseLimit(t.of, limit)
	return t, err
}

// units are what may stand behind the number of a limit, with what they make of it, by the kinds that they fit.
var units = map[string]struct {
	factor float64
	of     kind
}{
	"ns": {1e-9, duration}, "us": {1e-6, duration}, "µs": {1e-6, duration}, "ms": {1e-3, duration}, "s": {1, duration}, "min": {60, duration},
	"%": {0.01, share}, "tok/s": {1, rate}, "cores": {1, cores},
	"b": {1, size}, "kb": {1e3, size}, "mb": {1e6, size}, "gb": {1e9, size}, "tb": {1e12, size},
	"kib": {1 << 10, size}, "mib": {1 << 20, size}, "gib": {1 << 30, size}, "tib": {1 << 40, size},
}

// fits says what a limit of each kind looks like.
var fits = [...]string{
	count: "a number, as in 10", duration: "a time with its unit, as in 500ms", rate: "tokens a second, as in 20", share: "a share, as in 90%",
	size: "bytes with their unit, as in 8GB", cores: "a number of cores, as in 1.5",
}

func parseLimit(m *measure, text string) (float64, error) {
	wrong := fmt.Errorf("%.40q: the limit of %s must be %s", text, m.name, fits[m.kind])
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ%/")
	unit := text[len(digits):]
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !finite(v) {
		return 0, wrong
	}
	if unit == "" {
		if m.kind == duration || m.kind == size {
			return 0, wrong // 500 of what?
		}
		return v, nil
	}
	u, ok := units[strings.ToLower(unit)]
	if !ok || u.of != m.kind || !finite(v*u.factor) {
		return 0, wrong
	}
	return v * u.factor, nil
}

// look evaluates the condition. Terms whose measure is not known do not hold. value is that of the first term, in words.
func (c condition) look(s *store.Snapshot, w metric.Window) (holds bool, value string) {
	holds = true
	for i, t := range c {
		r := t.of.read(s, w)
		if i == 0 {
			value = metric.Reading(r, t.of.format)
		}
		holds = holds && r.OK() && t.holds(r.V)
	}
	return holds, value
}

func (t *term) holds(v float64) bool {
	switch t.op {
	case ">":
		return v > t.limit
	case ">=":
		return v >= t.limit
	case "<":
		return v < t.limit
	}
	return v <= t.limit
}

// String is the condition as the screen writes it.
func (c condition) String() string {
	words := make([]string, len(c))
	for i, t := range c {
		words[i] = t.of.name + " " + t.op + " " + t.of.format(t.limit)
	}
	return strings.Join(words, " and ")
}

// parseFor reads how long a condition must hold.
func parseFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > mostFor {
		return 0, fmt.Errorf("%.40q: must be a time from 0s to %v, as in \"10s\"", text, mostFor)
	}
	return d, nil
}

// mostFor is the longest time that a rule may wait.
const mostFor = 24 * time.Hour
