// Package cast records the screen: as an asciicast for terminal players, or as an animated SVG. A script can operate
// the screen during the recording.
package cast

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Limits of a script.
const (
	maxScript = 1 << 20 // bytes
	maxSteps  = 10_000
	maxWait   = time.Hour
	maxText   = 4096 // characters of one step

	// MinCols to MaxRows limit the size of the screen.
	MinCols, MaxCols = 20, 500
	MinRows, MaxRows = 5, 200
)

// Defaults of steps.
const (
	keyInterval  = 300 * time.Millisecond // between two keys, slow enough to follow
	typeInterval = 100 * time.Millisecond // between two characters
	waitForLimit = time.Minute            // timeout of wait_for
)

// Script is a sequence of actions on the screen.
type Script struct{ actions []action }

// action is one action of a script. Exactly one of wait, key, typed, w and h, text, and marker is set.
type action struct {
	line   int // line of the step in the file; 0: unknown
	step   int // number of the step, from 1
	wait   time.Duration
	key    string
	typed  rune
	w, h   int
	text   string // text to wait for
	marker string
	pause  time.Duration // pause after the action; for text: timeout
}

// actionFields are the fields of which a step has exactly one.
var actionFields = []string{"wait", "key", "keys", "type", "resize", "wait_for", "marker"}

// ParseScript reads a script: TOML with tables [[step]]. validKey reports whether a key name exists. The error is one
// line that names the line and the field.
func ParseScript(text string, validKey func(key string) bool) (*Script, error) {
	if len(text) > maxScript {
		return nil, fmt.Errorf("%d bytes: at most %d are allowed", len(text), maxScript)
	}
	var file struct {
		Step []map[string]any `toml:"step"`
	}
	meta, err := toml.Decode(text, &file)
	if err != nil {
		return nil, oneLine(err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) == 1 {
			return nil, fmt.Errorf("unknown table or key %s: use only [[step]]", clean.Quote(key.String()))
		}
	}
	if len(file.Step) == 0 || len(file.Step) > maxSteps {
		return nil, fmt.Errorf("%d steps: write 1 to %d [[step]] tables", len(file.Step), maxSteps)
	}
	script, lines := &Script{}, stepLines(text, len(file.Step))
	for i, fields := range file.Step {
		moves, field, err := parseStep(fields, validKey)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fieldPosition(text, lines[i], i+1, field), err)
		}
		for _, m := range moves {
			m.line, m.step = lines[i], i+1
			script.actions = append(script.actions, m)
		}
	}
	return script, nil
}

// oneLine shortens an error of the TOML library to one line with the line number.
func oneLine(err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %s", parse.Position.Line, clean.Cut(parse.Message, clean.MaxMessage))
	}
	words, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(clean.Cut(words, clean.MaxMessage))
}

// stepLines returns the line of each of n steps. All are 0 if the steps are not written as [[step]] tables.
func stepLines(text string, n int) []int {
	var at []int
	for i, line := range strings.Split(text, "\n") {
		head, _, _ := strings.Cut(line, "#")
		if strings.Join(strings.Fields(head), "") == "[[step]]" {
			at = append(at, i+1)
		}
	}
	if len(at) != n {
		return make([]int, n)
	}
	return at
}

// fieldPosition describes where a field of a step is.
func fieldPosition(text string, line, step int, field string) string {
	if line == 0 {
		return fmt.Sprintf("step %d: %s", step, clean.Name(field))
	}
	lines := strings.Split(text, "\n")
	for i := line; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "["); i++ {
		name, _, set := strings.Cut(lines[i], "=")
		if set && strings.Trim(strings.TrimSpace(name), `"'`) == field {
			line = i + 1
			break
		}
	}
	return fmt.Sprintf("line %d: %s", line, clean.Name(field))
}

// parseStep turns the fields of a step into actions. field is the field that err is about.
func parseStep(fields map[string]any, validKey func(string) bool) (moves []action, field string, err error) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	what := ""
	for _, name := range names {
		switch {
		case slices.Contains(actionFields, name) && what != "":
			return nil, name, fmt.Errorf("a step has one action, and this one also has %s", what)
		case slices.Contains(actionFields, name):
			what = name
		case name != "every" && name != "within":
			return nil, name, fmt.Errorf("unknown field: use one of %s, every, within", strings.Join(actionFields, ", "))
		}
	}
	if what == "" {
		return nil, "step", fmt.Errorf("no action: give one of %s", strings.Join(actionFields, ", "))
	}
	for name, partners := range map[string][]string{"every": {"keys", "type"}, "within": {"wait_for"}} {
		if _, set := fields[name]; set && !slices.Contains(partners, what) {
			return nil, name, fmt.Errorf("only allowed with %s", strings.Join(partners, " and "))
		}
	}
	r := stepReader{fields: fields, validKey: validKey}
	moves = r.read(what)
	return moves, r.field, r.err
}

// ParseSize reads the size of a screen, such as "120x36".
func ParseSize(text string) (cols, rows int, err error) {
	before, after, ok := strings.Cut(text, "x")
	if cols, err = strconv.Atoi(before); ok && err == nil {
		rows, err = strconv.Atoi(after)
	}
	if !ok || err != nil || cols < MinCols || cols > MaxCols || rows < MinRows || rows > MaxRows {
		return 0, 0, fmt.Errorf("%s: must be COLUMNSxROWS, %dx%d to %dx%d", clean.Quote(text), MinCols, MinRows, MaxCols, MaxRows)
	}
	return cols, rows, nil
}
