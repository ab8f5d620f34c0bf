package event

// Answer is how an answer came over HTTP, message by message: more than tokens tell, for the numbers of tools that count messages without text too.
type Answer struct {
	Began    Time // before a connection was looked for
	Chat     bool // it came from a chat interface
	Messages []Message
}

// MaxMessages is how many messages an Answer holds at most. Of a longer one none are kept.
const MaxMessages = 1 << 16

// Message is one message of an answer that is no comment.
type Message struct {
	At   Time // when its last byte was read
	Kind MessageKind
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
