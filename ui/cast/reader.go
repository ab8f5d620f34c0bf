package cast

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/clean"
)

// stepReader reads the fields of a step. It keeps the first error and its field.
type stepReader struct {
	fields   map[string]any
	validKey func(key string) bool
	field    string
	err      error
}

// read returns the actions of a step.
func (r *stepReader) read(what string) []action {
	switch what {
	case "wait":
		return []action{{wait: r.duration(what, 0)}}
	case "key":
		return []action{{key: r.key(what, r.fields[what]), pause: keyInterval}}
	case "keys":
		return r.keys()
	case "type":
		return r.typed()
	case "resize":
		w, h, err := ParseSize(r.text(what, maxText))
		r.fail(what, err)
		return []action{{w: w, h: h}}
	case "wait_for":
		return []action{{text: r.text(what, maxText), pause: r.duration("within", waitForLimit)}}
	default:
		return []action{{marker: r.text(what, maxText)}}
	}
}

func (r *stepReader) fail(field string, err error) {
	if err != nil && r.err == nil {
		r.field, r.err = field, err
	}
}

// duration reads a time, or returns the default if the field is absent.
func (r *stepReader) duration(field string, fallback time.Duration) time.Duration {
	value, set := r.fields[field]
	if !set {
		return fallback
	}
	text, ok := value.(string)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d <= 0 || d > maxWait {
		r.fail(field, fmt.Errorf("%v: must be a time in quotes, such as \"2s\" or \"500ms\", up to %v", clean.Quote(fmt.Sprint(value)), maxWait))
		return 0
	}
	return d
}

func (r *stepReader) text(field string, most int) string {
	text, ok := r.fields[field].(string)
	if !ok || strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > most || strings.IndexFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0 {
		r.fail(field, fmt.Errorf("%s: must be 1 to %d printable characters in quotes", clean.Quote(fmt.Sprint(r.fields[field])), most))
		return ""
	}
	return text
}

func (r *stepReader) key(field string, value any) string {
	name, ok := value.(string)
	if !ok || !r.validKey(name) {
		r.fail(field, fmt.Errorf("unknown key %s: give a character, or a name such as enter, esc, tab, up, left, pgdown, end, f1, shift+tab, ctrl+c", clean.Quote(fmt.Sprint(value))))
	}
	return name
}

func (r *stepReader) keys() (moves []action) {
	list, ok := r.fields["keys"].([]any)
	if !ok || len(list) == 0 {
		r.fail("keys", fmt.Errorf("must be a list of keys, such as [\"down\", \"enter\"]"))
	}
	every := r.duration("every", keyInterval)
	for _, value := range list {
		moves = append(moves, action{key: r.key("keys", value), pause: every})
	}
	return moves
}

func (r *stepReader) typed() (moves []action) {
	every := r.duration("every", typeInterval)
	for _, c := range r.text("type", maxText) {
		moves = append(moves, action{typed: c, pause: every})
	}
	return moves
}
