// Package chat renders conversations as prompts, with the chat template in a model's file.
package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/runtime/engine/chat/jinja"
)

// Roles of messages.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Message is one message of a conversation.
type Message struct{ Role, Content string }

// ErrNoTemplate means that the model's file has no chat template: the model only continues text.
var ErrNoTemplate = errors.New("the model has no chat template")

// Template renders messages as a prompt. It is safe for concurrent use.
type Template struct {
	source   *jinja.Template
	bos, eos string
	now      func() time.Time
}

// New parses the template of a model, the value of tokenizer.chat_template in GGUF files. bos and eos are the texts of
// the model's BOS and EOS tokens, "" if missing. The error is ErrNoTemplate for an empty template.
func New(template, bos, eos string) (t *Template, err error) {
	defer guard(&err)
	if strings.TrimSpace(template) == "" {
		return nil, ErrNoTemplate
	}
	source, err := jinja.Parse(template)
	if err != nil {
		return nil, fmt.Errorf("read chat template: %w", err)
	}
	return &Template{source, bos, eos, time.Now}, nil
}

// patience is the time limit of rendering. Real templates take less than a millisecond for a hundred messages.
const patience = 2 * time.Second

var errSlow = fmt.Errorf("rendering takes more than %v", patience)

// Render renders the prompt. With addGenerationPrompt it ends where the assistant's answer starts.
//
// The prompt contains special tokens as text and must be tokenized with special tokens enabled; StartsWithBOS reports
// whether BOS is included. A template may reject messages, for example two user messages in a row; the error then
// contains its message and wraps a jinja.Raised.
func (t *Template) Render(messages []Message, addGenerationPrompt bool) (prompt string, err error) {
	defer guard(&err)
	ctx, stop := context.WithTimeoutCause(context.Background(), patience, errSlow)
	defer stop()
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = jinja.Dict{{Name: "role", Value: m.Role}, {Name: "content", Value: m.Content}}
	}
	prompt, err = t.source.Render(ctx, jinja.Dict{
		{Name: "messages", Value: list},
		{Name: "bos_token", Value: t.bos},
		{Name: "eos_token", Value: t.eos},
		{Name: "add_generation_prompt", Value: addGenerationPrompt},
		{Name: "tools", Value: nil},
		{Name: "documents", Value: nil},
	}, t.now())
	if err != nil {
		return "", fmt.Errorf("apply chat template: %w", err)
	}
	return prompt, nil
}

// errBug means that the interpreter has panicked.
var errBug = errors.New("chat template interpreter failed")

// guard converts a panic to an error, so that no template can end the program.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errBug, p)
	}
}

// StartsWithBOS reports whether a prompt starts with the BOS token's text, so that the tokenizer must not add BOS
// again.
func (t *Template) StartsWithBOS(prompt string) bool {
	return t.bos != "" && strings.HasPrefix(prompt, t.bos)
}
