package chat

import (
	"errors"
	"slices"
)

// Conversation stores the messages and renders the next prompt. It is not safe for concurrent use.
type Conversation struct {
	template *Template
	system   string
	messages []Message // of user and assistant alternately, from the first question to the last answer
	question string    // question without an answer yet; "" if none exists
}

// NewConversation starts a conversation; system holds instructions for the assistant, or "". A nil template is for a
// model without one: each prompt is then only the user's text, and nothing is stored.
func NewConversation(t *Template, system string) *Conversation {
	return &Conversation{template: t, system: system}
}

// Plain reports whether the model only continues text.
func (c *Conversation) Plain() bool { return c.template == nil }

// Ask renders the prompt of all messages and a question. An unanswered previous question is dropped.
func (c *Conversation) Ask(question string) (prompt string, err error) {
	c.question = ""
	if c.Plain() {
		return question, nil
	}
	prompt, err = c.render(question)
	if err == nil {
		c.question = question
	}
	return prompt, err
}

// render renders the prompt. If the template rejects a system message, the instructions become part of the first
// question.
func (c *Conversation) render(question string) (string, error) {
	messages := append(append([]Message{}, c.messages...), Message{User, question})
	if c.system == "" {
		return c.template.Render(messages, true)
	}
	prompt, err := c.template.Render(append([]Message{{System, c.system}}, messages...), true)
	if refused := (Raised{}); !errors.As(err, &refused) {
		return prompt, err
	}
	messages[0].Content = c.system + "\n\n" + messages[0].Content
	if folded, also := c.template.Render(messages, true); also == nil {
		return folded, nil
	}
	return "", err
}

// Answer stores the answer to the last question, complete or as far as it was generated.
func (c *Conversation) Answer(text string) {
	if c.question == "" {
		return
	}
	c.messages = append(c.messages, Message{User, c.question}, Message{Assistant, text})
	c.question = ""
}

// Drop removes the oldest question and its answer, and reports whether there was one. The instructions stay.
func (c *Conversation) Drop() bool {
	if len(c.messages) < 2 {
		return false
	}
	c.messages = slices.Delete(c.messages, 0, 2)
	return true
}

// Messages returns the messages, without an unanswered question.
func (c *Conversation) Messages() []Message { return append([]Message{}, c.messages...) }

// Reset removes all messages but keeps the instructions.
func (c *Conversation) Reset() { c.messages, c.question = nil, "" }
