package chat

import "slices"

// Conversation stores the messages and renders the next prompt. It is not safe for concurrent use.
type Conversation struct {
	template *Template
	messages []Message // of user and assistant alternately, from the first question to the last answer
	question string    // question without an answer yet; "" if none exists
}

// NewConversation starts a conversation.
func NewConversation(t *Template) *Conversation { return &Conversation{template: t} }

// Ask renders the prompt of all messages and a question. An unanswered previous question is dropped.
func (c *Conversation) Ask(question string) (prompt string, err error) {
	c.question = ""
	prompt, err = c.template.Render(append(c.Messages(), Message{User, question}), true)
	if err == nil {
		c.question = question
	}
	return prompt, err
}

// Answer stores the answer to the last question, complete or as far as it was generated.
func (c *Conversation) Answer(text string) {
	if c.question == "" {
		return
	}
	c.messages = append(c.messages, Message{User, c.question}, Message{Assistant, text})
	c.question = ""
}

// Drop removes the oldest question and its answer, and reports whether there was one.
func (c *Conversation) Drop() bool {
	if len(c.messages) < 2 {
		return false
	}
	c.messages = slices.Delete(c.messages, 0, 2)
	return true
}

// Messages returns the messages, without an unanswered question.
func (c *Conversation) Messages() []Message { return append([]Message{}, c.messages...) }

// Reset removes all messages.
func (c *Conversation) Reset() { c.messages, c.question = nil, "" }
