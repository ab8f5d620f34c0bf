package answers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// The types of JSON members. None of them fails on a value of an unexpected type.
type (
	present bool // whether there is a member of that name
	filled  bool // whether the value is non-empty, of any type
	text    struct {
		text  string
		other bool // of another type: text is its JSON
	}
	tokens  []int32       // token ids; -1: cannot be one
	logs    int           // tokens in log probabilities; 0: in an unknown form
	count   int           // number of tokens
	millis  time.Duration // sent in ms
	ns      time.Duration // sent in ns
	word    string        // a name; empty if longer than maxPicked
	blob    string        // a string of any length
	failure struct {
		some bool
		kind string
		json []byte
	}
)

// UnmarshalJSON implements json.Unmarshaler.
func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *filled) UnmarshalJSON(v []byte) error {
	switch v[0] {
	case 'n', 'f':
		*f = false
	case '"':
		*f = len(v) > 2
	case '[', '{':
		*f = len(bytes.TrimSpace(v[1:len(v)-1])) > 0
	default:
		*f = true
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(v []byte) error {
	var some filled
	*t = text{}
	if err := some.UnmarshalJSON(v); err != nil || !bool(some) {
		return err
	}
	if t.other = v[0] != '"'; t.other {
		t.text = string(v)
	} else {
		t.text = unquoted(v)
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *tokens) UnmarshalJSON(v []byte) error {
	*l = nil
	if v[0] != '[' || len(bytes.TrimSpace(v[1:len(v)-1])) == 0 {
		return nil
	}
	for number := range bytes.SplitSeq(v[1:len(v)-1], []byte{','}) {
		id, err := strconv.ParseUint(string(bytes.TrimSpace(number)), 10, 31)
		if err != nil {
			*l = append(*l, -1)
			continue
		}
		*l = append(*l, int32(id))
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *logs) UnmarshalJSON(v []byte) error {
	if *l = 0; v[0] == '{' {
		var of struct{ Content, Tokens []present } // of chats, of completions
		_ = json.Unmarshal(v, &of)                 // what is of another type stays empty
		*l = logs(max(len(of.Content), len(of.Tokens)))
	}
	return nil
}

// implausible marks a number above the plausible bound until Message.parse has counted it: event.Refuse refuses it.
const implausible = math.MinInt64

// number parses a JSON number between 0 and most. It returns implausible for one above, and 0 for anything else.
func number(v []byte, most float64) float64 {
	n, _ := strconv.ParseFloat(string(v), 64)
	switch {
	case n > most:
		return implausible
	case n > 0:
		return n
	}
	return 0
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(v []byte) error {
	*c = count(number(v, event.MaxTokens))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *millis) UnmarshalJSON(v []byte) error {
	n := number(v, float64(event.MaxRequestTime/time.Millisecond))
	if *m = millis(n * float64(time.Millisecond)); n == implausible {
		*m = implausible
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *ns) UnmarshalJSON(v []byte) error {
	*n = ns(number(v, float64(event.MaxRequestTime)))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(v []byte) error {
	*w = ""
	if len(v) <= maxPicked {
		*w = word(unquoted(v))
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blob) UnmarshalJSON(v []byte) error {
	*b = blob(unquoted(v))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *failure) UnmarshalJSON(v []byte) error {
	var some filled
	err := some.UnmarshalJSON(v)
	*f = failure{some: bool(some), json: bytes.Clone(v)}
	if v[0] == '{' {
		var n named
		_ = json.Unmarshal(v, &n) // word accepts any type
		f.kind = n.kind()
	}
	return err
}

// named are the names of a failure.
type named struct {
	Type word `json:"type"`
	Code word `json:"code"`
}

// kind returns the name of a failure in plain words; "": it has none.
func (n *named) kind() string { return identifier(string(cmp.Or(n.Type, n.Code))) }

// unquoted returns the string of a JSON value, "" if it is something else.
func unquoted(v []byte) (s string) {
	if len(v) > 1 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) { // base64 of several MB, for example
		return string(v[1 : len(v)-1])
	}
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
