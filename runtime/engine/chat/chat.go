// Package chat renders conversations as prompts, with the chat template in a model's file. Templates come with the
// model, and the interpreter bounds neither time nor memory, so they are rendered in a process of their own.
package chat

import (
	"errors"
	"fmt"
	"strings"
)

// Roles of messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// Message is one message of a conversation.
type Message struct{ Role, Content string }

// ErrNoTemplate means that the model's file has no chat template: the model only continues text.
var ErrNoTemplate = errors.New("the model has no chat template")

// maxTemplate limits a template, in bytes. The largest known one has 20,000.
const maxTemplate = 1 << 20

// Template renders messages as a prompt. It is safe for concurrent use.
type Template struct{ Source, BOS, EOS string }

// New checks the template of a model, the value of tokenizer.chat_template in GGUF files, by rendering a question. bos
// and eos are the texts of the model's BOS and EOS tokens, "" if missing. The error is ErrNoTemplate for an empty
// template.
func New(template, bos, eos string) (*Template, error) {
	if strings.TrimSpace(template) == "" {
		return nil, ErrNoTemplate
	}
	if len(template) > maxTemplate {
		return nil, fmt.Errorf("read chat template: it has %d bytes, more than %d", len(template), maxTemplate)
	}
	t := &Template{template, bos, eos}
	_, err := t.render([]Message{{User, "Hi"}}, false)
	if refused := (Raised{}); err != nil && !errors.As(err, &refused) {
		return nil, fmt.Errorf("read chat template: %w", err)
	}
	return t, nil
}

// Render renders the prompt. With addGenerationPrompt it ends where the assistant's answer starts.
//
// The prompt contains special tokens as text, often BOS among them, and must be tokenized with special tokens enabled. A
// template may reject messages, for example two user messages in a row; the error then
// contains its message and wraps a Raised.
func (t *Template) Render(messages []Message, addGenerationPrompt bool) (prompt string, err error) {
	prompt, err = t.render(messages, addGenerationPrompt)
	if err != nil {
		return "", fmt.Errorf("apply chat template: %w", err)
	}
	return prompt, nil
}
