package answers

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxPicked limits a name or value that is kept, in bytes.
const maxPicked = 256

// limits are the request fields that limit the number of output tokens.
var limits = []string{
	"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict",
	"options.num_predict", "parameters.max_new_tokens", "sampling_params.max_new_tokens", // Ollama, TGI, SGLang
}

// Request reads the body of a request as its bytes pass: a few scalars of a JSON object. It holds nothing else: prompts may
// be of any length and are never kept. Members of a nested object are named PARENT.NAME. Invalid JSON yields no useful
// values and no error.
type Request struct {
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

// NewRequest returns a reader of the body of a request.
func NewRequest() *Request {
	r := &Request{want: map[string]bool{"model": true}, got: map[string]string{}}
	for _, name := range limits {
		r.want[name] = true
	}
	return r
}

// Feed reads the next bytes.
func (r *Request) Feed(b []byte) {
	for i := 0; i < len(b); i++ {
		if r.text && !r.keep && !r.escape {
			skip := bytes.IndexAny(b[i:], `"\`)
			if skip < 0 {
				return
			}
			i += skip
		}
		r.byte(b[i])
	}
}

func (r *Request) byte(c byte) {
	if r.text {
		r.add(c)
		switch {
		case r.escape:
			r.escape = false
		case c == '\\':
			r.escape = true
		case c == '"':
			r.text = false
			r.named()
		}
		return
	}
	switch c {
	case '"':
		r.text, r.token = true, r.token[:0]
		r.keep = r.here() && (!r.value[r.depth] || r.want[r.path()])
		r.add(c)
	case '{', '[':
		r.open(c == '{')
	case '}', ']':
		r.end()
		r.depth--
	case ',':
		r.end()
		if r.here() {
			r.value[r.depth] = false
		}
	case ':':
		if r.here() {
			r.value[r.depth], r.keep, r.token = true, r.want[r.path()], r.token[:0]
		}
	case ' ', '\t', '\r', '\n':
	default:
		r.add(c)
	}
}

// here reports whether the open object may hold wanted members.
func (r *Request) here() bool {
	return r.depth >= 1 && r.depth < len(r.objects) && r.objects[r.depth] && (r.depth == 1 || r.objects[1])
}

func (r *Request) path() string {
	if r.depth == 1 {
		return r.names[1]
	}
	return r.names[1] + "." + r.names[2]
}

func (r *Request) add(c byte) {
	if !r.keep {
		return
	}
	if r.token = append(r.token, c); len(r.token) > maxPicked {
		r.keep = false
	}
}

// open enters an object or array.
func (r *Request) open(object bool) {
	r.depth++
	r.keep = false
	if r.depth >= 1 && r.depth < len(r.objects) {
		r.objects[r.depth], r.value[r.depth], r.names[r.depth] = object, false, ""
	}
}

// named takes the completed string as a member name, if it is one.
func (r *Request) named() {
	if !r.here() || r.value[r.depth] {
		return
	}
	r.names[r.depth] = ""
	if r.keep {
		r.names[r.depth] = scalar(string(r.token))
	}
}

// end stores the completed scalar if it is a wanted value.
func (r *Request) end() {
	if r.keep && r.here() && r.value[r.depth] && len(r.token) > 0 {
		r.got[r.path()] = string(r.token)
	}
	r.keep = false
}

// Model returns the requested model, "" if none.
func (r *Request) Model() string { return scalar(r.got["model"]) }

// MaxTokens returns the limit of the number of output tokens, at most event.MaxTokens, 0 if none.
func (r *Request) MaxTokens() (most int) {
	for _, name := range limits {
		if n, err := strconv.Atoi(r.got[name]); err == nil && n <= event.MaxTokens {
			most = max(most, n)
		}
	}
	return most
}

// scalar returns the string of a JSON text that may be invalid, "" if it is something else.
func scalar(text string) (s string) {
	if json.Unmarshal([]byte(text), &s) != nil {
		return ""
	}
	return s
}
