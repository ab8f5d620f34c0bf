package proxy

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// maxPicked bounds a name or a value that a picker keeps, in bytes.
const maxPicked = 256

// picker finds a few scalars in a JSON object that passes by, of which it holds nothing else: prompts can be as long as they like and are
// never kept. Names of what lies in an object of the object are joined by a dot. What is not JSON yields nothing of use, and no error.
type picker struct {
	want map[string]bool
	got  map[string]string // as they are written, strings with their quotes

	depth   int
	objects [3]bool   // whether what is open at depths 1 and 2 is an object
	value   [3]bool   // whether a value comes next there, and not a name
	names   [3]string // of the value there
	text    bool      // in a string
	escape  bool      // behind a backslash in it
	keep    bool      // the string or scalar under way may be of use
	token   []byte
}

func newPicker(names ...string) *picker {
	p := &picker{want: map[string]bool{}, got: map[string]string{}}
	for _, name := range names {
		p.want[name] = true
	}
	return p
}

// feed goes through the next bytes.
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

// here reports whether members of the object that is open may be of use.
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

// open enters an object or an array.
func (p *picker) open(object bool) {
	p.depth++
	p.keep = false
	if p.depth >= 1 && p.depth < len(p.objects) {
		p.objects[p.depth], p.value[p.depth], p.names[p.depth] = object, false, ""
	}
}

// named takes a string that has ended as a name, if it is one.
func (p *picker) named() {
	if !p.here() || p.value[p.depth] {
		return
	}
	p.names[p.depth] = ""
	if p.keep {
		p.names[p.depth] = unquoted(string(p.token))
	}
}

// end takes the scalar that has ended as a value, if there is one.
func (p *picker) end() {
	if p.keep && p.here() && p.value[p.depth] && len(p.token) > 0 {
		p.got[p.path()] = string(p.token)
	}
	p.keep = false
}

// word is the string of the given name, "" if there is none.
func (p *picker) word(name string) string { return unquoted(p.got[name]) }

// count is the number of the given name, 0 if there is none that counts anything.
func (p *picker) count(name string) int {
	n, err := strconv.Atoi(p.got[name])
	if err != nil || n < 0 || n > maxCount {
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
