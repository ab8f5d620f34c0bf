package metric

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Word is the unit of a column of text.
const Word event.Unit = "word"

// Column describes what a table has of each row. Conditions name it.
type Column struct {
	Name  string     // in conditions, lower case
	Title string     // above the column
	Unit  event.Unit // Word: text
	Means string
}

// Example returns a condition on the column.
func (c *Column) Example() string { return c.Name + quantityOf(c.Unit).example }

// Condition compares a number or a word with a value: ttft>500ms, model=llama.
type Condition struct {
	Name  string  // of what is compared, lower case
	Op    string  // one of Comparisons
	Value string  // as written
	Limit float64 // value of a number in its base unit: s, bytes, 1 for 100 %
}

// Comparisons are the operators of conditions.
var Comparisons = []string{"=", "!=", ">", ">=", "<", "<="}

// ParseCondition splits a text at its comparison, and returns false if it has none. Resolve reads the value.
func ParseCondition(text string) (c Condition, found bool, err error) {
	i := strings.IndexAny(text, "=<>")
	if i < 0 {
		return c, false, nil
	}
	if i > 0 && text[i-1] == '!' {
		i--
	}
	value := strings.TrimLeft(text[i:], "!=<>")
	c = Condition{Name: strings.ToLower(strings.TrimSpace(text[:i])), Op: text[i : len(text)-len(value)], Value: strings.TrimSpace(value)}
	if !slices.Contains(Comparisons, c.Op) {
		return c, true, fmt.Errorf("unknown comparison %.10q: use one of %s", c.Op, strings.Join(Comparisons, " "))
	}
	return c, true, nil
}

// Resolve reads the value in the unit of a column. Times and sizes need a unit of their own.
func (c *Condition) Resolve(of *Column) error {
	if of.Unit == Word {
		if c.Op != "=" && c.Op != "!=" {
			return fmt.Errorf("%s is a word: compare it with = or !=", of.Name)
		}
		return nil
	}
	number := strings.TrimRightFunc(c.Value, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	unit := strings.ToLower(strings.TrimSpace(c.Value[len(number):]))
	v, err := strconv.ParseFloat(number, 64)
	factor, ok := 1.0, unit == ""
	if q := quantityOf(of.Unit); !ok || q.needsUnit {
		if of.Unit == "By/s" {
			unit = strings.TrimSuffix(unit, "/s")
		}
		factor, ok = q.units[unit]
	}
	if d, compound := time.ParseDuration(c.Value); compound == nil && quantityOf(of.Unit) == quantities["s"] {
		v, factor, ok, err = d.Seconds(), 1, true, nil // 1m30s, as other flags take it
	}
	if c.Limit = v * factor; err != nil || !ok || math.IsInf(c.Limit, 0) || math.IsNaN(c.Limit) {
		return fmt.Errorf("cannot compare %s with %.40q: write a value such as %s", of.Name, c.Value, of.Example())
	}
	return nil
}

// Holds compares a number with the limit.
func (c *Condition) Holds(v float64) bool {
	switch c.Op {
	case ">":
		return v > c.Limit
	case ">=":
		return v >= c.Limit
	case "<":
		return v < c.Limit
	case "<=":
		return v <= c.Limit
	case "!=":
		return v != c.Limit
	}
	return v == c.Limit
}

// quantity says how numbers of a unit are written in conditions.
type quantity struct {
	example   string
	units     map[string]float64 // factors by lower-case name
	needsUnit bool
}

// quantities are the quantities by unit. "" stands for every other one.
var quantities = map[event.Unit]*quantity{
	Word: {example: "=word"},
	"":   {example: ">100", units: map[string]float64{"k": 1e3, "m": 1e6}},
	"s": {example: ">500ms", needsUnit: true, units: map[string]float64{
		"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600,
	}},
	"{token}/s": {example: "<20", units: map[string]float64{"tok/s": 1, "k": 1e3, "m": 1e6}},
	"1":         {example: ">90%", units: map[string]float64{"%": 0.01}},
	"By": {example: ">8GB", needsUnit: true, units: map[string]float64{
		"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}},
	"{core}": {example: ">1.5", units: map[string]float64{"cores": 1}},
	"Hz":     {example: ">2GHz", units: map[string]float64{"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}},
	"W":      {example: ">200", units: map[string]float64{"w": 1}},
	"Cel":    {example: ">80", units: map[string]float64{"°c": 1}},
}

// quantityOf returns how numbers of a unit are written.
func quantityOf(u event.Unit) *quantity {
	switch u {
	case "ns":
		u = "s"
	case "By/s":
		u = "By"
	}
	if q := quantities[u]; q != nil {
		return q
	}
	return quantities[""]
}
