package event

// Answer describes an HTTP response, message by message. Benchmark tools count messages without text too, so token
// events are not enough to reproduce their numbers.
type Answer struct {
	Began    Time // before connecting
	Chat     bool // sent by a chat endpoint
	Messages []Message
}

// MaxMessages is how many messages an Answer holds. Longer responses hold none.
const MaxMessages = 1 << 16

// Message is one message of a response, comments excluded.
type Message struct {
	At   Time // when its last byte was read
	Kind MessageKind
}

// MessageKind is a set of the parts of a message.
type MessageKind uint8

// The parts of a message.
const (
	HasChoices   MessageKind = 1 << iota // choices, with or without text
	HasOutput                            // text that is not reasoning, or a tool call
	HasReasoning                         // reasoning
	HasUsage                             // token counts without choices
	IsDone                               // end of the response
)
