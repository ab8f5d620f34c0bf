// Package cast makes recordings for people of the screen: asciicasts, which terminal players show, and pictures that move. What is done
// on the screen meanwhile is in a script.
package cast

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Bounds of a script and of what it says.
const (
	maxScript = 1 << 20 // bytes
	maxSteps  = 10_000
	maxWait   = time.Hour
	maxText   = 4096 // characters that one step types

	// MinCols to MaxRows are the sizes that a screen can have.
	MinCols, MaxCols = 20, 500
	MinRows, MaxRows = 5, 200
)

// What steps leave open.
const (
	keyEvery  = 300 * time.Millisecond // between two keys, so that they can be followed
	typeEvery = 100 * time.Millisecond // between two characters
	seenIn    = time.Minute            // that is waited for a text at most
)

// Script is what is done on the screen, in order.
type Script struct{ moves []move }

// move is one thing that a script does. One of wait, key, typed, w and h, text, and marker says what.
type move struct {
	line   int // of the step in the file; 0: not known
	step   int // from 1
	wait   time.Duration
	key    string
	typed  rune
	w, h   int
	text   string // that is waited for
	marker string
	pause  time.Duration // after it; for a text, how long it may take to come
}

// doing are the fields of which a step has exactly one.
var doing = []string{"wait", "key", "keys", "type", "resize", "wait_for", "marker"}

// ParseScript reads a script: TOML, of tables [[step]]. known says which keys there are, by their names. An error is one line that
// names the line and the field.
func ParseScript(text string, known func(key string) bool) (*Script, error) {
	if len(text) > maxScript {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxScript)
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
			return nil, fmt.Errorf("unknown table or key %q: a script is made of [[step]]", key.String())
		}
	}
	if len(file.Step) == 0 || len(file.Step) > maxSteps {
		return nil, fmt.Errorf("it has %d steps, each a [[step]]: must be 1 to %d", len(file.Step), maxSteps)
	}
	script, lines := &Script{}, stepLines(text, len(file.Step))
	for i, fields := range file.Step {
		moves, field, err := movesOf(fields, known)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(text, lines[i], i+1, field), err)
		}
		for _, m := range moves {
			m.line, m.step = lines[i], i+1
			script.moves = append(script.moves, m)
		}
	}
	return script, nil
}

// oneLine is an error of the TOML library with its line.
func oneLine(err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %s", parse.Position.Line, strings.ReplaceAll(parse.Message, "\n", " "))
	}
	words, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(words)
}

// stepLines are the lines of n steps, 0 where they cannot be told because the steps are not written as tables of their own.
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

// place says where a field of a step stands.
func place(text string, line, step int, field string) string {
	if line == 0 {
		return fmt.Sprintf("step %d: %s", step, field)
	}
	lines := strings.Split(text, "\n")
	for i := line; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), "["); i++ {
		name, _, set := strings.Cut(lines[i], "=")
		if set && strings.Trim(strings.TrimSpace(name), `"'`) == field {
			line = i + 1
			break
		}
	}
	return fmt.Sprintf("line %d: %s", line, field)
}

// movesOf turns the fields of a step into what it does; field is the one that the error is about.
func movesOf(fields map[string]any, known func(string) bool) (moves []move, field string, err error) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	what := ""
	for _, name := range names {
		switch {
		case slices.Contains(doing, name) && what != "":
			return nil, name, fmt.Errorf("a step does one thing, and this one has %s, too", what)
		case slices.Contains(doing, name):
			what = name
		case name != "every" && name != "within":
			return nil, name, fmt.Errorf("unknown field; there are %s, every, within", strings.Join(doing, ", "))
		}
	}
	if what == "" {
		return nil, "step", fmt.Errorf("it does nothing: give one of %s", strings.Join(doing, ", "))
	}
	for name, goes := range map[string][]string{"every": {"keys", "type"}, "within": {"wait_for"}} {
		if _, set := fields[name]; set && !slices.Contains(goes, what) {
			return nil, name, fmt.Errorf("goes with %s only", strings.Join(goes, " and "))
		}
	}
	r := reader{fields: fields, known: known}
	moves = r.read(what)
	return moves, r.field, r.err
}

// ParseSize reads the size of a screen, as "120x36".
func ParseSize(text string) (cols, rows int, err error) {
	before, after, ok := strings.Cut(text, "x")
	if cols, err = strconv.Atoi(before); ok && err == nil {
		rows, err = strconv.Atoi(after)
	}
	if !ok || err != nil || cols < MinCols || cols > MaxCols || rows < MinRows || rows > MaxRows {
		return 0, 0, fmt.Errorf("%s: must be COLUMNSxROWS, %dx%d to %dx%d", quoted(text), MinCols, MinRows, MaxCols, MaxRows)
	}
	return cols, rows, nil
}
