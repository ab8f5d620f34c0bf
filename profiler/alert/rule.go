// Package alert watches snapshots for what the user wants to be told of: rules with a condition that must hold for some time. It runs no
// command and writes nothing; who watches does that.
package alert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
)

// MaxRules is how many rules there may be.
const MaxRules = 64

// Bounds of a rule's texts.
const (
	mostName = 60
	mostArgs = 32
	mostArg  = 4096 // bytes
)

// Rule is what the user wants to be told of.
type Rule struct {
	Name   string        // one line, printable
	When   condition     // what must hold
	For    time.Duration // and for how long, without a break
	Window metric.Window // of percentiles and counts
	Run    []string      // the command to tell, with its arguments; nil: none
}

// windowNames are the windows by their names in rules.
var windowNames = map[string]metric.Window{"1s": metric.Second, "10s": metric.TenSeconds, "1m": metric.Minute, "session": metric.Session}

// ParseRules reads rules as a configuration file has them: tables with the fields name, when, for, window and run. An error names rule
// and field.
func ParseRules(tables []map[string]any) ([]Rule, error) {
	if len(tables) > MaxRules {
		return nil, fmt.Errorf("%d alerts: there may be %d", len(tables), MaxRules)
	}
	rules := make([]Rule, 0, len(tables))
	for i, table := range tables {
		r, err := parseRule(table)
		if err != nil {
			called := fmt.Sprintf("alert %d", i+1)
			if r.Name != "" {
				called = fmt.Sprintf("alert %q", r.Name)
			}
			return nil, fmt.Errorf("%s: %w", called, err)
		}
		if slices.ContainsFunc(rules, func(o Rule) bool { return o.Name == r.Name }) {
			return nil, fmt.Errorf("alert %q: name: another alert has it", r.Name)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parser reads one field of a rule.
type parser struct {
	field string
	must  bool
	parse func(*Rule, any) error
}

// parsers read the fields of a rule, that of the name first.
var parsers = []parser{
	{"name", true, (*Rule).parseName},
	{"when", true, func(r *Rule, v any) (err error) {
		return withText(v, func(s string) error { r.When, err = parseCondition(s); return err })
	}},
	{"for", false, func(r *Rule, v any) (err error) {
		return withText(v, func(s string) error { r.For, err = parseFor(s); return err })
	}},
	{"window", false, (*Rule).parseWindow},
	{"run", false, (*Rule).parseRun},
}

func parseRule(table map[string]any) (r Rule, err error) {
	r.Window = metric.Minute
	for _, p := range parsers {
		v, ok := table[p.field]
		if !ok && p.must {
			return r, fmt.Errorf("%s: missing", p.field)
		}
		if !ok {
			continue
		}
		if err := p.parse(&r, v); err != nil {
			return r, fmt.Errorf("%s: %w", p.field, err)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(table)) {
		if !slices.ContainsFunc(parsers, func(p parser) bool { return p.field == field }) {
			return r, fmt.Errorf("unknown field %.40q; fields are name, when, for, window, run", field)
		}
	}
	return r, nil
}

func withText(v any, f func(string) error) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("must be a text in quotes, not %s", shown(v))
	}
	return f(s)
}

// shown is a value of any type in a few characters.
func shown(v any) string { return fmt.Sprintf("%.40q", fmt.Sprint(v)) }

func (r *Rule) parseName(v any) error {
	return withText(v, func(s string) error {
		name := line(s)
		if name == "" || len(name) > mostName {
			return fmt.Errorf("must have 1 to %d characters", mostName)
		}
		r.Name = name
		return nil
	})
}

func (r *Rule) parseWindow(v any) error {
	return withText(v, func(s string) error {
		w, ok := windowNames[s]
		if !ok {
			return fmt.Errorf("%.40q: must be 1s, 10s, 1m or session", s)
		}
		r.Window = w
		return nil
	})
}

func (r *Rule) parseRun(v any) error {
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > mostArgs {
		return fmt.Errorf("must be a list of 1 to %d texts: a program and its arguments, as in [\"notify-send\", \"slow\"]", mostArgs)
	}
	args := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok || len(s) > mostArg || strings.ContainsRune(s, 0) || i == 0 && s == "" {
			return fmt.Errorf("%s: must be a text of at most %d characters", shown(v), mostArg)
		}
		args[i] = s
	}
	r.Run = args
	return nil
}

// line makes one printable line of a text.
func line(s string) string {
	return strings.Join(strings.Fields(clean.Printable(strings.ToValidUTF8(s, "?"))), " ")
}
