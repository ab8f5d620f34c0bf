// Package chat makes prompts of conversations, with the template that a model's file brings along.
package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/runtime/chat/jinja"
)

// Who says a message.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Message is what somebody says in a conversation.
type Message struct{ Role, Content string }

// ErrNoTemplate is the error of a model whose file has no template: it continues text, and knows no conversations.
var ErrNoTemplate = errors.New("the model has no chat template")

// Template makes a prompt of messages. It may be used by several goroutines at once.
type Template struct {
	source   *jinja.Template
	bos, eos string
	now      func() time.Time
}

// New reads the template of a model, which GGUF files have under tokenizer.chat_template. bos and eos are the texts of the model's
// tokens for the beginning of a text and its end, "" for one that it does not have. The error is ErrNoTemplate if there is no template.
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

// patience is how long a template may take. Real ones take less than a millisecond for a hundred messages.
const patience = 2 * time.Second

var errSlow = fmt.Errorf("it takes more than %v", patience)

// Render makes the prompt. With addGenerationPrompt it ends where the assistant's answer begins.
//
// The text names special tokens, and is to be tokenized so that they become tokens; StartsWithBOS says whether the first is among them.
// A template may refuse messages, for example two of a user's in a row; the error then has its words and wraps a jinja.Raised.
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

// errBug is the error of a template that the interpreter does not survive.
var errBug = errors.New("llmtop cannot cope with the chat template")

// guard turns a panic into an error: whatever is in a model's file, it does not end the program.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errBug, p)
	}
}

// StartsWithBOS says whether a prompt begins with the text of the token that a tokenizer may put first: it is not to add another.
func (t *Template) StartsWithBOS(prompt string) bool {
	return t.bos != "" && strings.HasPrefix(prompt, t.bos)
}
