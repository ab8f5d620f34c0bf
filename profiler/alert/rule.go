// Package alert evaluates alert rules on snapshots: a rule has a condition that must hold for some time. The package
// only reports state changes; the caller prints them and runs commands.
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

// MaxRules is the maximum number of rules.
const MaxRules = 64

// Limits of a rule's texts.
const (
	maxName = 60
	maxArgs = 32
	maxArg  = 4096 // bytes
)

// Rule is one alert that the user has set.
type Rule struct {
	Name   string        // one line, printable
	When   condition     // the condition
	For    time.Duration // how long the condition must hold without a break
	Window metric.Window // window of percentiles and counts
	Run    []string      // command to run, with its arguments; nil: none
}

// windowNames maps the names used in rules to windows.
var windowNames = map[string]metric.Window{"1s": metric.Second, "10s": metric.TenSeconds, "1m": metric.Minute, "session": metric.Session}

// ParseRules reads rules from a configuration file: tables with the fields name, when, for, window and run. An error
// names the rule and the field.
func ParseRules(tables []map[string]any) ([]Rule, error) {
	if len(tables) > MaxRules {
		return nil, fmt.Errorf("%d alerts: at most %d are allowed", len(tables), MaxRules)
	}
	rules := make([]Rule, 0, len(tables))
	for i, table := range tables {
		r, err := parseRule(table)
		if err != nil {
			name := fmt.Sprintf("alert %d", i+1)
			if r.Name != "" {
				name = fmt.Sprintf("alert %q", r.Name)
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if slices.ContainsFunc(rules, func(o Rule) bool { return o.Name == r.Name }) {
			return nil, fmt.Errorf("alert %q: name: another alert has the same name", r.Name)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ruleFields are the fields of a rule with what reads them, the name first.
var ruleFields = []struct {
	name     string
	required bool
	parse    func(*Rule, any) error
}{
	{"name", true, (*Rule).parseName},
	{"when", true, func(r *Rule, v any) (err error) {
		return parseString(v, func(s string) error { r.When, err = parseCondition(s); return err })
	}},
	{"for", false, func(r *Rule, v any) (err error) {
		return parseString(v, func(s string) error { r.For, err = parseFor(s); return err })
	}},
	{"window", false, (*Rule).parseWindow},
	{"run", false, (*Rule).parseRun},
}

func parseRule(table map[string]any) (r Rule, err error) {
	r.Window = metric.Minute
	var known []string
	for _, f := range ruleFields {
		known = append(known, f.name)
		v, ok := table[f.name]
		if !ok && f.required {
			return r, fmt.Errorf("%s: missing", f.name)
		}
		if !ok {
			continue
		}
		if err := f.parse(&r, v); err != nil {
			return r, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(known, field) {
			return r, fmt.Errorf("unknown field %.40q; fields are %s", field, strings.Join(known, ", "))
		}
	}
	return r, nil
}

// parseString calls f with v, which must be a string.
func parseString(v any, f func(string) error) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("must be a string in quotes, not %s", abbreviate(v))
	}
	return f(s)
}

// abbreviate formats a value of any type in a few characters.
func abbreviate(v any) string { return clean.Quote(fmt.Sprint(v)) }

func (r *Rule) parseName(v any) error {
	return parseString(v, func(s string) error {
		name := oneLine(s)
		if name == "" || len(name) > maxName {
			return fmt.Errorf("must have 1 to %d characters", maxName)
		}
		r.Name = name
		return nil
	})
}

func (r *Rule) parseWindow(v any) error {
	return parseString(v, func(s string) error {
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
	if !ok || len(list) == 0 || len(list) > maxArgs {
		return fmt.Errorf("must be a list of 1 to %d strings: a program and its arguments, as in [\"notify-send\", \"slow\"]", maxArgs)
	}
	args := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok || len(s) > maxArg || strings.ContainsRune(s, 0) || i == 0 && s == "" {
			return fmt.Errorf("%s: must be a string of at most %d bytes", abbreviate(v), maxArg)
		}
		args[i] = s
	}
	r.Run = args
	return nil
}

// oneLine makes one printable line of s.
func oneLine(s string) string {
	return strings.Join(strings.Fields(clean.Line(s)), " ")
}
