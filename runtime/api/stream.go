package api

import "github.com/llmtop/llmtop/profiler/event"

// Stream is how the answer to a request came, message by message: more than events tell, for tools that count messages without text too.
type Stream struct {
	Request   event.RequestID
	Began     event.Time // before a connection was looked for
	Chat      bool
	Sent      event.Time // when the first byte of the request was written
	Messages  []Message
	Prompt    int // tokens, as reported; 0 unknown
	Generated int // tokens, as reported, or else messages with text
	Failed    bool
}

// Message is one message of an answer that is no comment.
type Message struct {
	At    event.Time // when its last byte was read
	Kind  MessageKind
	Total int // tokens generated so far, as far as the message tells; 0: it does not
}

// MessageKind says what is in a message.
type MessageKind uint8

// The parts of a message.
const (
	HasChoices   MessageKind = 1 << iota // choices, with or without text
	HasOutput                            // text that is no reasoning, or a tool call
	HasReasoning                         // reasoning
	HasUsage                             // counts of tokens, and no choices
	IsDone                               // the mark of the end
)

// kindOf is the kind of a message that was read.
func kindOf(c *chunk, has *content) (k MessageKind) {
	switch {
	case has.choices:
		k = HasChoices
	case c.Usage != nil:
		k = HasUsage
	}
	if has.output {
		return k | HasOutput
	}
	if has.text != "" {
		k |= HasReasoning
	}
	return k
}
