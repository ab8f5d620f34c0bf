package cast

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// reader takes the fields of a step. Once one is wrong, field and err stay as they are.
type reader struct {
	fields map[string]any
	known  func(key string) bool
	field  string
	err    error
}

// read is what a step does.
func (r *reader) read(what string) []move {
	switch what {
	case "wait":
		return []move{{wait: r.duration(what, 0)}}
	case "key":
		return []move{{key: r.key(what, r.fields[what]), pause: keyEvery}}
	case "keys":
		return r.keys()
	case "type":
		return r.typed()
	case "resize":
		w, h, err := ParseSize(r.text(what, maxText))
		r.fail(what, err)
		return []move{{w: w, h: h}}
	case "wait_for":
		return []move{{text: r.text(what, maxText), pause: r.duration("within", seenIn)}}
	default:
		return []move{{marker: r.text(what, maxText)}}
	}
}

func (r *reader) fail(field string, err error) {
	if err != nil && r.err == nil {
		r.field, r.err = field, err
	}
}

// duration reads a time, or what stands for one that is left open.
func (r *reader) duration(field string, open time.Duration) time.Duration {
	value, set := r.fields[field]
	if !set {
		return open
	}
	text, ok := value.(string)
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d <= 0 || d > maxWait {
		r.fail(field, fmt.Errorf("%v: must be a time in quotes, such as \"2s\" or \"500ms\", up to %v", quoted(value), maxWait))
		return 0
	}
	return d
}

// quoted is a value as it may stand in an error.
func quoted(value any) string {
	text := []rune(fmt.Sprintf("%q", fmt.Sprint(value)))
	if len(text) > 60 {
		return string(text[:60]) + "…"
	}
	return string(text)
}

func (r *reader) text(field string, most int) string {
	text, ok := r.fields[field].(string)
	if !ok || strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > most || strings.IndexFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0 {
		r.fail(field, fmt.Errorf("%s: must be 1 to %d printable characters in quotes", quoted(r.fields[field]), most))
		return ""
	}
	return text
}

func (r *reader) key(field string, value any) string {
	name, ok := value.(string)
	if !ok || !r.known(name) {
		r.fail(field, fmt.Errorf("unknown key %s: give a character, or a name such as enter, esc, tab, up, left, pgdown, end, f1, shift+tab, ctrl+c", quoted(value)))
	}
	return name
}

func (r *reader) keys() (moves []move) {
	list, ok := r.fields["keys"].([]any)
	if !ok || len(list) == 0 {
		r.fail("keys", fmt.Errorf("must be a list of keys, such as [\"down\", \"enter\"]"))
	}
	every := r.duration("every", keyEvery)
	for _, value := range list {
		moves = append(moves, move{key: r.key("keys", value), pause: every})
	}
	return moves
}

func (r *reader) typed() (moves []move) {
	every := r.duration("every", typeEvery)
	for _, c := range r.text("type", maxText) {
		moves = append(moves, move{typed: c, pause: every})
	}
	return moves
}
