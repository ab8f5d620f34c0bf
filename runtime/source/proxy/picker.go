package proxy

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxPicked limits a name or value that a picker keeps, in bytes.
const maxPicked = 256

// picker extracts a few scalars from a JSON object as its bytes pass. It holds nothing else: prompts may be of any
// length and are never kept. Members of a nested object are named PARENT.NAME. Invalid JSON yields no useful values and
// no error.
type picker struct {
	want map[string]bool
	got  map[string]string // raw JSON, strings with their quotes

	depth   int
	objects [3]bool   // whether the open container at depth 1 and 2 is an object
	value   [3]bool   // whether a value, not a name, comes next at that depth
	names   [3]string // name of the current member at that depth
	text    bool      // inside a string
	escape  bool      // after a backslash in a string
	keep    bool      // keep the current string or scalar
	token   []byte
}

func newPicker(names ...string) *picker {
	p := &picker{want: map[string]bool{}, got: map[string]string{}}
	for _, name := range names {
		p.want[name] = true
	}
	return p
}

// feed processes the next bytes.
func (p *picker) feed(b []byte) {
	for i := 0; i < len(b); i++ {
		if p.text && !p.keep && !p.escape {
			skip := bytes.IndexAny(b[i:], `"\`)
			if skip < 0 {
				return
			}
			i += skip
		}
		p.byte(b[i])
	}
}

func (p *picker) byte(c byte) {
	if p.text {
		p.add(c)
		switch {
		case p.escape:
			p.escape = false
		case c == '\\':
			p.escape = true
		case c == '"':
			p.text = false
			p.named()
		}
		return
	}
	switch c {
	case '"':
		p.text, p.token = true, p.token[:0]
		p.keep = p.here() && (!p.value[p.depth] || p.want[p.path()])
		p.add(c)
	case '{', '[':
		p.open(c == '{')
	case '}', ']':
		p.end()
		p.depth--
	case ',':
		p.end()
		if p.here() {
			p.value[p.depth] = false
		}
	case ':':
		if p.here() {
			p.value[p.depth], p.keep, p.token = true, p.want[p.path()], p.token[:0]
		}
	case ' ', '\t', '\r', '\n':
	default:
		p.add(c)
	}
}

// here reports whether the open object may hold wanted members.
func (p *picker) here() bool {
	return p.depth >= 1 && p.depth < len(p.objects) && p.objects[p.depth] && (p.depth == 1 || p.objects[1])
}

func (p *picker) path() string {
	if p.depth == 1 {
		return p.names[1]
	}
	return p.names[1] + "." + p.names[2]
}

func (p *picker) add(c byte) {
	if !p.keep {
		return
	}
	if p.token = append(p.token, c); len(p.token) > maxPicked {
		p.keep = false
	}
}

// open enters an object or array.
func (p *picker) open(object bool) {
	p.depth++
	p.keep = false
	if p.depth >= 1 && p.depth < len(p.objects) {
		p.objects[p.depth], p.value[p.depth], p.names[p.depth] = object, false, ""
	}
}

// named takes the completed string as a member name, if it is one.
func (p *picker) named() {
	if !p.here() || p.value[p.depth] {
		return
	}
	p.names[p.depth] = ""
	if p.keep {
		p.names[p.depth] = unquoted(string(p.token))
	}
}

// end stores the completed scalar if it is a wanted value.
func (p *picker) end() {
	if p.keep && p.here() && p.value[p.depth] && len(p.token) > 0 {
		p.got[p.path()] = string(p.token)
	}
	p.keep = false
}

// word returns the string value of name, or "".
func (p *picker) word(name string) string { return unquoted(p.got[name]) }

// count returns the non-negative integer value of name, at most event.MaxTokens, or 0.
func (p *picker) count(name string) int {
	n, err := strconv.Atoi(p.got[name])
	if err != nil || n < 0 || n > event.MaxTokens {
		return 0
	}
	return n
}

func unquoted(text string) string {
	var s string
	if json.Unmarshal([]byte(text), &s) != nil {
		return ""
	}
	return s
}
