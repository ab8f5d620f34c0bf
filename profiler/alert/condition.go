package alert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Limits of a condition.
const (
	maxText  = 500 // bytes of a condition
	maxTerms = 8
)

// condition is a list of terms that must all hold.
type condition []term

// term compares one measure with a limit.
type term struct {
	measure *measure
	op      string // >, >=, <, <=
	limit   float64
}

// parseCondition reads terms joined by "and", for example "ttft_p99 > 500ms and running >= 4".
func parseCondition(text string) (c condition, err error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, fmt.Errorf("empty: write a condition such as %q", "ttft_p99 > 500ms")
	case len(text) > maxText:
		return nil, fmt.Errorf("longer than %d characters", maxText)
	}
	words := split(text)
	for {
		if len(words) < 3 {
			return nil, fmt.Errorf("%.60q: write a measure, one of > >= < <=, and a limit, as in %q", strings.Join(words, " "), "ttft_p99 > 500ms")
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
			return nil, fmt.Errorf("%.40q: expected \"and\" or the end after a limit", words[0])
		case len(c) == maxTerms:
			return nil, fmt.Errorf("more than %d conditions", maxTerms)
		}
		words = words[1:]
	}
}

// split cuts text into words and comparison operators. "> 5 %" reads the same as ">5%".
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
	for i := len(words) - 1; i > 0; i-- { // join a unit to its number
		if _, isUnit := unitOf(words[i]); isUnit && isNumber(words[i-1]) {
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
	if t.measure = byName(name); t.measure == nil {
		return t, fmt.Errorf("unknown measure %.40q: use one of %s", name, measureNames())
	}
	switch op {
	case ">", ">=", "<", "<=":
		t.op = op
	default:
		return t, fmt.Errorf("%.10q: unknown comparison: use one of > >= < <=", op)
	}
	t.limit, err = parseLimit(t.measure, limit)
	return t, err
}

// limitUnit is the unit of a limit: its factor, and the kind of measure that it fits.
type limitUnit struct {
	factor float64
	kind   kind
}

// unitOf returns the unit with a name; false if absent. Bytes may be per second.
func unitOf(name string) (limitUnit, bool) {
	name = strings.ToLower(name)
	u, ok := units[name]
	if !ok {
		u, ok = units[strings.TrimSuffix(name, "/s")]
		ok = ok && u.kind == size
	}
	return u, ok
}

var units = map[string]limitUnit{
	"ns": {1e-9, duration}, "us": {1e-6, duration}, "µs": {1e-6, duration}, "ms": {1e-3, duration}, "s": {1, duration}, "min": {60, duration},
	"%": {0.01, share}, "tok/s": {1, rate}, "cores": {1, cores}, "w": {1, watts}, "°c": {1, celsius},
	"hz": {1, hertz}, "khz": {1e3, hertz}, "mhz": {1e6, hertz}, "ghz": {1e9, hertz},
	"b": {1, size}, "kb": {1e3, size}, "mb": {1e6, size}, "gb": {1e9, size}, "tb": {1e12, size},
	"kib": {1 << 10, size}, "mib": {1 << 20, size}, "gib": {1 << 30, size}, "tib": {1 << 40, size},
}

// limitFormats describes the limit of each kind.
var limitFormats = [...]string{
	count: "a number, as in 10", duration: "a time with its unit, as in 500ms", rate: "tokens per second, as in 20", share: "a share, as in 90%",
	size: "bytes with their unit, as in 8GB", cores: "a number of cores, as in 1.5",
	hertz: "a frequency, as in 2GHz", watts: "a power in W, as in 200", celsius: "a temperature in °C, as in 80",
}

func parseLimit(m *measure, text string) (float64, error) {
	kind := kindOf(m.unit)
	wrong := fmt.Errorf("%.40q: the limit of %s must be %s", text, m.name, limitFormats[kind])
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ°%/")
	unit := text[len(digits):]
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !finite(v) {
		return 0, wrong
	}
	if unit == "" {
		if kind == duration || kind == size {
			return 0, wrong // 500 of what?
		}
		return v, nil
	}
	u, ok := unitOf(unit)
	if !ok || u.kind != kind || !finite(v*u.factor) {
		return 0, wrong
	}
	return v * u.factor, nil
}

// evaluate checks the condition on a snapshot. A term without a reading does not hold, nor one whose limit lies inside
// the bucket of a server's percentile. value is the formatted reading of the first term. missing is a measure that the
// engine or the machine does not report, nil if absent: while it is missing, the condition cannot hold.
func (c condition) evaluate(s *store.Snapshot, w metric.Window) (holds bool, value string, missing *measure) {
	holds = true
	for i := range c {
		t := &c[i]
		a := t.measure.read(s, w)
		if i == 0 {
			value = t.describe(&a)
		}
		if missing == nil && a.Origin < event.NotYet {
			missing = t.measure
		}
		holds = holds && a.OK() && t.holds(&a)
	}
	return holds, value, missing
}

// describe formats a value; the bounds of its bucket if the limit lies between them.
func (t *term) describe(a *amount) string {
	limit := t.nanos()
	switch q := a.bucket; {
	case !a.OK() || q.Edge == metric.NoQuantile:
		return metric.Reading(a.Reading, t.measure.format)
	case q.Over(limit) || q.AtMost(limit):
		return metric.QuantileOf(q)
	default:
		return q.Range() + ": inconclusive"
	}
}

// nanos returns the limit in ns, for a duration in s.
func (t *term) nanos() int64 { return int64(min(t.limit*1e9, math.MaxInt64/2)) }

func (t *term) holds(a *amount) bool {
	if q := a.bucket; q.Edge != metric.NoQuantile {
		return (t.op[0] == '>' && q.Over(t.nanos())) || (t.op == "<=" && q.AtMost(t.nanos())) || (t.op == "<" && q.AtMost(t.nanos()-1))
	}
	switch t.op {
	case ">":
		return a.V > t.limit
	case ">=":
		return a.V >= t.limit
	case "<":
		return a.V < t.limit
	}
	return a.V <= t.limit
}

// String returns the condition as the screen shows it.
func (c condition) String() string {
	words := make([]string, len(c))
	for i, t := range c {
		words[i] = t.measure.name + " " + t.op + " " + t.measure.format(t.limit)
	}
	return strings.Join(words, " and ")
}

// parseFor reads how long a condition must hold.
func parseFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxFor {
		return 0, fmt.Errorf("%.40q: must be a time from 0s to %v, as in \"10s\"", text, maxFor)
	}
	return d, nil
}

// maxFor is the longest duration that a rule can require.
const maxFor = 24 * time.Hour
