package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// dialect is one HTTP interface whose answers the proxy can read.
type dialect struct {
	name string // label of its requests
	path string // suffix of its request paths
	read func(*fact, []byte) error
	bare bool // streams one JSON value per line instead of server-sent events
	chat bool // takes a conversation
}

// dialects are matched in this order.
var dialects = []dialect{
	{name: "chat", path: "/chat/completions", read: readOpenAI, chat: true},
	{name: "completions", path: "/completions", read: readOpenAI},
	{name: "completion", path: "/completion", read: readOpenAI}, // llama.cpp's own
	{name: "responses", path: "/responses", read: readResponses, chat: true},
	{name: "messages", path: "/v1/messages", read: readAnthropic, chat: true},
	{name: "ollama chat", path: "/api/chat", read: readOllama, bare: true, chat: true},
	{name: "ollama generate", path: "/api/generate", read: readOllama, bare: true},
}

// dialectOf returns the dialect for a POST to path, or nil if the request does not generate.
func dialectOf(path string) *dialect {
	for i := range dialects {
		if strings.HasSuffix(path, dialects[i].path) {
			return &dialects[i]
		}
	}
	return nil
}

// fact holds the metadata of one message of an answer, or the sum of several. Zero fields were not reported. It holds
// no text.
type fact struct {
	model string
	parts []streamed.Part // generated text, by choice
	named bool            // the message names its response
	why   string          // reason why the answer ended
	done  bool            // no useful message follows

	prompt, cached, generated, reasoning int  // token totals of the answer so far; cached is part of prompt
	cachedKnown                          bool // cached was reported

	load, queue, prefill time.Duration // durations of the stages before the first token

	routed  string // expert picks, in the server's encoding
	answers int    // number of choices in the message with routed

	failed bool
	kind   string // type of the failure; "": not named

	provider string // program that runs the model

	malformed int // numbers that were left out, since they cannot be
}

// write adds generated text, reasoning or part of a tool call, if there is some.
func (f *fact) write(p streamed.Part) {
	if p.Answer+p.Reasoning > 0 {
		f.parts = append(f.parts, p)
	}
}

// count records the generated tokens of an answer, see streamed.NewUsage.
func (f *fact) count(generated, reasoning, total count) {
	u := streamed.NewUsage(f.prompt, int(generated), int(reasoning), int(total))
	f.generated, f.reasoning = max(f.generated, u.Generated), max(f.reasoning, u.Reasoning)
}

// knowCached records a count of cached tokens; nil: not reported.
func (f *fact) knowCached(n *count) {
	if n != nil {
		f.cached, f.cachedKnown = max(f.cached, int(*n)), true
	}
}

// reasons maps servers' finish reasons to the words of event.Outcome.
var reasons = map[string]string{
	"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "eos": "stop", "word": "stop",
	"length": "length", "max_tokens": "length", "max_output_tokens": "length", "limit": "length",
}

// reason returns the word of event.Outcome for a server's finish reason.
func reason(word word) string {
	if common := reasons[string(word)]; common != "" {
		return common
	}
	return identifier(string(word))
}

// identifier returns a name as is if it is short and consists of plainWords. Anything else becomes "other", since it may hold a secret or
// part of a prompt.
func identifier(name string) string {
	const longest = 60
	for word := range strings.SplitSeq(name, "_") {
		if len(name) > longest || !slices.Contains(plainWords, word) {
			return "other"
		}
	}
	return name
}

// plainWords are the words in servers' names for failures and finish reasons.
var plainWords = strings.Fields(`
	abort aborted access account api authentication authorization bad billing body call calls cancel cancelled client closed
	completed connection content context credits dead denied disabled end engine entity eos error exceed exceeded exhausted
	expired failed failure filter filtered forbidden found function gateway generation image inactive incomplete inference
	input insufficient interrupted internal invalid key large length limit load loaded loading long malformed max maximum
	memory messages method missing model moderation not null of out output overload overloaded parameter parse payload pause
	permission policy processing prompt quota rate recitation refusal rejected repetition request requests required resource
	safety schema sensitive sequence server service shutdown size stop supported template timeout token tokens too tool tools
	turn type unauthorized unavailable unknown unload unprocessable unsupported use user validation value violation window`)

// parse decodes one JSON value into a message, of which implausible numbers are counted and left out.
func (f *fact) parse(value []byte, into any) error {
	err := parse(value, into)
	f.malformed += refuse(reflect.ValueOf(into).Elem())
	return err
}

// refuse replaces the implausible numbers in v by 0, and counts them.
func refuse(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return refuse(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += refuse(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += refuse(v.Index(i))
		}
	case reflect.Int, reflect.Int64:
		if v.Int() == implausible {
			v.SetInt(0)
			return 1
		}
	}
	return n
}

// parse reads one JSON value. Members of an unexpected type count as missing.
func parse(value []byte, into any) error {
	err := json.Unmarshal(value, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil
	}
	return err
}

// The types of JSON members. None of them fails on a value of an unexpected type.
type (
	present bool          // whether there is a member of that name
	filled  bool          // whether the value is non-empty, of any type
	text    int           // pieces of a text, see streamed.Pieces; of another type those of its JSON
	list    int           // number of elements of an array of numbers
	count   int           // number of tokens
	millis  time.Duration // sent in ms
	ns      time.Duration // sent in ns
	word    string        // a name; empty if longer than maxPicked
	blob    string        // a string of any length
	failure struct {
		some bool
		kind string
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
	*t = 0
	if err := some.UnmarshalJSON(v); err != nil || !bool(some) {
		return err
	}
	if v[0] == '"' && bytes.IndexByte(v, '\\') >= 0 {
		*t = text(max(streamed.Pieces(unquoted(string(v))), 1))
		return nil
	}
	*t = text(streamed.Pieces(bytes.Trim(v, `"`)))
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

// implausible marks a number above the plausible bound until fact.parse has counted it.
const implausible = -1

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
		*w = word(unquoted(string(v)))
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *blob) UnmarshalJSON(v []byte) error {
	switch *b = ""; {
	case v[0] != '"':
	case bytes.IndexByte(v, '\\') < 0: // base64 of several MB: no need to unescape
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
		f.some = bool(some)
		return err
	}
	var named struct{ Type, Code word }
	err := parse(v, &named)
	f.some, f.kind = bool(some), identifier(string(cmp.Or(named.Type, named.Code)))
	return err
}

// fail records a failure that a message reports.
func (f *fact) fail(why failure) {
	if why.some {
		f.failed, f.kind = true, why.kind
	}
}
