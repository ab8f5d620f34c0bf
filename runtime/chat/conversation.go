package chat

import (
	"errors"
	"slices"

	"github.com/llmtop/llmtop/runtime/chat/jinja"
)

// Conversation keeps what was said and makes the next prompt of it. It is not for use by several goroutines at once.
type Conversation struct {
	template *Template
	system   string
	said     []Message // by the user and the assistant in turn, from the first question to the last answer
	question string    // that has no answer yet; "" if there is none
}

// NewConversation starts one, with instructions for the assistant or "". A nil template is that of a model without one: the prompts are
// then what the user says and nothing else, and nothing is kept.
func NewConversation(t *Template, system string) *Conversation {
	return &Conversation{template: t, system: system}
}

// Plain says whether the model only continues text.
func (c *Conversation) Plain() bool { return c.template == nil }

// Ask makes the prompt of all that was said and a question. A question before that was not answered is forgotten.
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

// render makes the prompt. To a template that takes no instructions they are told as a part of the first question.
func (c *Conversation) render(question string) (string, error) {
	messages := append(append([]Message{}, c.said...), Message{User, question})
	if c.system == "" {
		return c.template.Render(messages, true)
	}
	prompt, err := c.template.Render(append([]Message{{System, c.system}}, messages...), true)
	var refused jinja.Raised
	if !errors.As(err, &refused) {
		return prompt, err
	}
	messages[0].Content = c.system + "\n\n" + messages[0].Content
	if folded, also := c.template.Render(messages, true); also == nil {
		return folded, nil
	}
	return "", err
}

// Answer keeps the answer to the last question: all of it, or what there was when it was stopped.
func (c *Conversation) Answer(text string) {
	if c.question == "" {
		return
	}
	c.said = append(c.said, Message{User, c.question}, Message{Assistant, text})
	c.question = ""
}

// Drop forgets the oldest question and its answer, and reports whether there was one. The instructions stay.
func (c *Conversation) Drop() bool {
	if len(c.said) < 2 {
		return false
	}
	c.said = slices.Delete(c.said, 0, 2)
	return true
}

// Messages are what was said, without a question that has no answer.
func (c *Conversation) Messages() []Message { return append([]Message{}, c.said...) }

// Reset forgets what was said, and keeps the instructions.
func (c *Conversation) Reset() { c.said, c.question = nil, "" }
