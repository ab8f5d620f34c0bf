package answers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// Message is one message of an answer, or the sum of several. Zero fields were not reported.
type Message struct {
	At       event.Time // when its last byte was read
	Parts    []Part     // generated text, by choice
	Named    bool       // the message names its response
	whole    bool       // the message is the whole answer
	texts    bool       // see Reader.Texts
	again    bool       // but for its text, it is the message before it
	Model    string
	Provider string // program that runs the model
	Why      string // reason why the answer ended, in the words of event.Outcome
	Done     bool   // no useful message follows

	Prompt, Cached, Generated, Reasoning int  // token totals of the answer so far; Cached is part of Prompt
	CachedKnown                          bool // Cached was reported

	Drafted, Accepted int // tokens of drafts, of speculative decoding

	Load, Queue, Prefill time.Duration // durations of the stages before the first token

	Routed  string // expert picks, in the server's encoding
	Answers int    // number of choices in the message with Routed

	Failed  bool
	Kind    string // type of the failure, in plain words; "": not named
	Failure []byte // JSON that describes the failure, as sent

	Malformed int   // numbers that were left out, since they cannot be
	Wrong     error // why a part of the message could not be read; nil: all was read
	Torn      bool  // the answer stopped inside the message or right after it
	Rest      bool  // the first after missing bytes: it may be the rest of another
}

// Part is generated text in one message of an answer.
type Part struct {
	At                event.Time // when it was read
	Choice            int        // number of the answer, of a request for several
	Tokens            int        // its token ids or log probabilities; 0: not reported
	Answer, Reasoning int        // pieces of its text, see Pieces

	Text string  // reasoning, then the answer; see Reader.Texts
	IDs  []int32 // token ids, -1 for one that cannot be; see Reader.Texts

	keep bool // Text is kept
}

// part returns an empty part of a choice with a known number of tokens, if that is not 0.
func (m *Message) part(choice, tokens int) Part {
	return Part{Choice: choice, Tokens: tokens, keep: m.texts}
}

// reason adds texts of the reasoning.
func (p *Part) reason(texts ...text) {
	for _, t := range texts {
		p.Reasoning += Pieces(t.text)
		if p.keep {
			p.Text += t.text
		}
	}
}

// say adds other texts, and names and arguments of tool calls.
func (p *Part) say(texts ...text) {
	for _, t := range texts {
		p.Answer += Pieces(t.text)
		if p.keep {
			p.Text += t.text
		}
	}
}

// Reasoned returns how many of n tokens of the part are reasoning, by its share of the text: it comes first.
func (p *Part) Reasoned(n int) int { return n * p.Reasoning / max(p.Reasoning+p.Answer, 1) }

// write adds a part, if it has text.
func (m *Message) write(p Part) {
	if p.Answer+p.Reasoning > 0 {
		m.Parts = append(m.Parts, p)
	}
}

// expect notes a text that is of another type.
func (m *Message) expect(field string, t text) {
	if t.other && m.Wrong == nil {
		kind := map[byte]string{'{': "object", '[': "array", 't': "bool"}[t.text[0]]
		m.Wrong = fmt.Errorf("field %q holds a %s", field, cmp.Or(kind, "number"))
	}
}

// count records the generated tokens of an answer, of servers that may leave reasoning out of them. total includes the
// prompt.
func (m *Message) count(generated, reasoning, total count) {
	if reasoning > generated || total > 0 && int(total) == m.Prompt+int(generated+reasoning) {
		generated += reasoning
	}
	m.Generated, m.Reasoning = max(m.Generated, int(generated)), max(m.Reasoning, int(reasoning))
}

// knowCached records a count of cached tokens; nil: not reported.
func (m *Message) knowCached(n *count) {
	if n != nil {
		m.Cached, m.CachedKnown = max(m.Cached, int(*n)), true
	}
}

// route records the expert picks of a message; the first message with picks counts.
func (m *Message) route(picks string, answers int) {
	if m.Routed == "" && picks != "" {
		m.Routed, m.Answers = picks, answers
	}
}

// fail records a failure that a message reports.
func (m *Message) fail(why failure) {
	if why.some {
		m.Failed, m.Kind, m.Failure = true, why.kind, why.json
	}
}

// end records a server's finish reason; "": the message has none.
func (m *Message) end(why word) {
	switch {
	case why == "":
	case why == "error":
		m.Failed = true
	case slices.Contains(failures, why):
		m.Failed, m.Kind = true, string(why)
	default:
		m.Why = reason(why)
	}
}

// failures are the finish reasons, besides error, of answers that failed. A server that aborts a request whose client
// still reads did not do what was asked.
var failures = []word{"failed", "abort", "aborted"}

// add merges a message into the sum of the answer. Fields that the message lacks keep their values.
func (m *Message) add(o *Message) {
	m.Model, m.Provider, m.Why = cmp.Or(o.Model, m.Model), cmp.Or(o.Provider, m.Provider), cmp.Or(o.Why, m.Why)
	m.Done, m.CachedKnown = m.Done || o.Done, m.CachedKnown || o.CachedKnown
	m.Malformed += o.Malformed
	m.Prompt, m.Cached, m.Generated = max(m.Prompt, o.Prompt), max(m.Cached, o.Cached), max(m.Generated, o.Generated)
	m.Reasoning, m.Drafted, m.Accepted = max(m.Reasoning, o.Reasoning), max(m.Drafted, o.Drafted), max(m.Accepted, o.Accepted)
	m.Load, m.Queue, m.Prefill = max(m.Load, o.Load), max(m.Queue, o.Queue), max(m.Prefill, o.Prefill)
	m.route(o.Routed, o.Answers)
	if o.Failed {
		m.Failed, m.Kind = true, o.Kind
	}
}

// parse decodes a JSON value into v. Implausible numbers are counted and left out; members of an unexpected type count as
// missing. Errors: it is not JSON; the whole answer is of another type than v, such as a list of answers.
func (m *Message) parse(value []byte, v any) error {
	err := clean.UnmarshalJSON(value, v)
	m.Malformed += event.Refuse(reflect.ValueOf(v).Elem())
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && (!m.whole || wrong.Field != "") {
		m.Wrong, err = wrong, nil
	}
	return err
}

// reasons maps servers' finish reasons to the words of event.Outcome.
var reasons = map[string]string{
	"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "eos": "stop", "eos_token": "stop", "word": "stop",
	"length": "length", "max_tokens": "length", "max_output_tokens": "length", "limit": "length", "canceled": "cancelled",
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
