package alert

import (
	"fmt"
	"math"
	"regexp"
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
	metric.Condition
}

// parseCondition reads terms joined by "and", for example "ttft_p99 > 500ms and running >= 4".
func parseCondition(text string) (c condition, err error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, fmt.Errorf("empty: write a condition such as %q", "ttft_p99 > 500ms")
	case len(text) > maxText:
		return nil, fmt.Errorf("longer than %d characters", maxText)
	}
	for _, part := range and.Split(text, -1) {
		if len(c) == maxTerms {
			return nil, fmt.Errorf("more than %d conditions", maxTerms)
		}
		t, err := parseTerm(part)
		if err != nil {
			return nil, err
		}
		c = append(c, t)
	}
	return c, nil
}

// and separates terms.
var and = regexp.MustCompile(`(?i)\s+and\s+`)

func parseTerm(text string) (t term, err error) {
	text = strings.TrimSpace(text)
	c, compares, err := metric.ParseCondition(text)
	if !compares || c.Name == "" || c.Value == "" {
		return t, fmt.Errorf("%.60q: write a measure, one of > >= < <=, and a limit, as in %q", text, "ttft_p99 > 500ms")
	}
	t = term{byName(c.Name), c}
	switch {
	case t.measure == nil:
		return t, fmt.Errorf("unknown measure %.40q: use one of %s", c.Name, measureNames())
	case err != nil:
		return t, err
	case c.Op == "=" || c.Op == "!=":
		return t, fmt.Errorf("unknown comparison %q: use one of > >= < <=", c.Op)
	}
	if err = t.Resolve(&t.measure.Column); err == nil && t.Limit < 0 {
		err = fmt.Errorf("%.40q: the limit of %s must not be negative", c.Value, c.Name)
	}
	if words := strings.Fields(c.Value); err != nil && len(words) > 1 {
		err = fmt.Errorf("%.40q: expected \"and\" or the end after a limit", words[1])
	}
	return t, err
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
		holds = holds && a.OK() && t.meets(&a)
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
func (t *term) nanos() int64 { return int64(min(t.Limit*1e9, math.MaxInt64/2)) }

func (t *term) meets(a *amount) bool {
	if q := a.bucket; q.Edge != metric.NoQuantile {
		return (t.Op[0] == '>' && q.Over(t.nanos())) || (t.Op == "<=" && q.AtMost(t.nanos())) || (t.Op == "<" && q.AtMost(t.nanos()-1))
	}
	return t.Holds(a.V)
}

// String returns the condition as the screen shows it.
func (c condition) String() string {
	words := make([]string, len(c))
	for i, t := range c {
		words[i] = t.measure.Name + " " + t.Op + " " + t.measure.format(t.Limit)
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
