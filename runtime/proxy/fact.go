package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// dialect is one of the HTTP interfaces whose answers are understood.
type dialect struct {
	name string // what its requests are labelled
	path string // how the paths of its requests end
	read func(*fact, []byte) error
	bare bool // it streams JSON values, a line each, and not server-sent events
}

// dialects are looked through in this order.
var dialects = []dialect{
	{name: "chat", path: "/chat/completions", read: readOpenAI},
	{name: "completions", path: "/completions", read: readOpenAI},
	{name: "completion", path: "/completion", read: readOpenAI}, // llama.cpp's own
	{name: "responses", path: "/responses", read: readResponses},
	{name: "messages", path: "/v1/messages", read: readAnthropic},
	{name: "ollama chat", path: "/api/chat", read: readOllama, bare: true},
	{name: "ollama generate", path: "/api/generate", read: readOllama, bare: true},
}

// dialectOf is the dialect of the requests that are posted to a path, nil if that is something else.
func dialectOf(path string) *dialect {
	for i := range dialects {
		if strings.HasSuffix(path, dialects[i].path) {
			return &dialects[i]
		}
	}
	return nil
}

// fact is what one message of an answer tells. What it does not tell is zero. There is no text in it.
type fact struct {
	model string
	text  bool   // it holds generated text, reasoning or a part of a tool call
	ids   int    // how many token ids stand beside the text
	why   string // the answer ended for this reason
	done  bool   // nothing that counts comes after it

	prompt, cached, generated int // tokens of the whole answer so far, cached ones being part of the prompt

	load, queue, prefill time.Duration // stages before the first token

	routed  string // which experts were picked, in the server's form
	answers int    // choices in the message that has it

	failed bool
	kind   string // of the failure, "" if it has no name
}

// reasons are the words of event.Outcome for those of the servers.
var reasons = map[string]string{
	"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "eos": "stop", "word": "stop",
	"length": "length", "max_tokens": "length", "max_output_tokens": "length", "limit": "length",
}

// reason makes one of the words of event.Outcome of what a server gives as the reason.
func reason(word word) string {
	if known := reasons[string(word)]; known != "" {
		return known
	}
	return identifier(string(word))
}

// identifier is a name that servers give to a kind of thing. Whatever may be something else, like a secret or a piece of a prompt, becomes
// "other".
func identifier(name string) string {
	const longest = 40
	strange := func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }
	if len(name) > longest || strings.ContainsFunc(name, strange) {
		return "other"
	}
	return name
}

// parse reads one JSON value. Members of a kind that is not expected count as missing.
func parse(value []byte, into any) error {
	err := json.Unmarshal(value, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil
	}
	return err
}

// The types of members. None of them refuses a value of another kind than expected.
type (
	filled  bool          // whether there is anything in a value, whatever that is
	list    int           // how many elements an array of numbers has
	count   int           // of tokens
	millis  time.Duration // given in ms
	ns      time.Duration // given in ns
	word    string        // a name, of which no more is kept than maxPicked
	blob    string        // a string of any length
	failure struct {
		told bool
		kind string
	}
)

// The largest numbers that are believed.
const (
	maxCount    = 1 << 30
	maxDuration = 24 * time.Hour
)

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
func (l *list) UnmarshalJSON(v []byte) error {
	*l = 0
	if v[0] == '[' && len(bytes.TrimSpace(v[1:len(v)-1])) > 0 {
		*l = list(bytes.Count(v, []byte{','}) + 1)
	}
	return nil
}

// number is a JSON number from 0 to most, or else 0.
func number(v []byte, most float64) float64 {
	if n, err := strconv.ParseFloat(string(v), 64); err == nil && n >= 0 && n <= most {
		return n
	}
	return 0
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(v []byte) error {
	*c = count(number(v, maxCount))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *millis) UnmarshalJSON(v []byte) error {
	*m = millis(number(v, float64(maxDuration/time.Millisecond)) * float64(time.Millisecond))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *ns) UnmarshalJSON(v []byte) error {
	*n = ns(number(v, float64(maxDuration)))
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(v []byte) error {
	*w = ""
	if len(v) <= maxPicked {
		*w = word(unquoted(string(v)))
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blob) UnmarshalJSON(v []byte) error {
	switch *b = ""; {
	case v[0] != '"':
	case bytes.IndexByte(v, '\\') < 0: // megabytes of base64 need no second look
		*b = blob(v[1 : len(v)-1])
	default:
		*b = blob(unquoted(string(v)))
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *failure) UnmarshalJSON(v []byte) error {
	var some filled
	*f = failure{}
	if err := some.UnmarshalJSON(v); err != nil || v[0] != '{' {
		f.told = bool(some)
		return err
	}
	var told struct{ Type, Code word }
	err := parse(v, &told)
	f.told, f.kind = bool(some), identifier(string(cmp.Or(told.Type, told.Code)))
	return err
}

// fail takes a failure that a message tells.
func (f *fact) fail(why failure) {
	if why.told {
		f.failed, f.kind = true, why.kind
	}
}
