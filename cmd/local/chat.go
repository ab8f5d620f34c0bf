package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/chat"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// chatPrompts converts the prompts of a run to the format of its model.
type chatPrompts struct {
	template *chat.Template // nil: prompts are continued as they are
	mode     string         // "chat" or "plain", with the reason, for the header; "" for the built-in model
	unused   error          // why the model's template is not used; nil: it is, or there is none
}

// begin reads the chat template of the model. If the file cannot be read, the engine reports the error later.
func (c *chatPrompts) begin(model string, raw bool) {
	switch {
	case model == "":
		return
	case raw:
		c.mode = "plain (--raw)"
		return
	}
	template, err := readTemplate(model)
	c.template = template
	switch {
	case err == nil:
		c.mode = "chat"
	case errors.Is(err, chat.ErrNoTemplate):
		c.mode = "plain"
	default:
		c.mode, c.unused = "plain: "+err.Error(), err
	}
}

// readTemplate reads the chat template from a model file, with the texts of the tokens it may use.
func readTemplate(path string) (*chat.Template, error) {
	f, err := gguf.Open(filepath.Clean(path))
	if err != nil {
		return nil, chat.ErrNoTemplate
	}
	defer f.Close() //nolint:errcheck // nothing was written
	source, err := f.Metadata.String("tokenizer.chat_template")
	if err != nil {
		return nil, chat.ErrNoTemplate
	}
	tokens, _ := f.Metadata.Strings("tokenizer.ggml.tokens") // the engine refuses a file without tokens
	text := func(key string) string {
		id, err := f.Metadata.Uint("tokenizer.ggml." + key)
		if err != nil || id >= uint64(len(tokens)) {
			return ""
		}
		return tokens[id]
	}
	return chat.New(source, text("bos_token_id"), text("eos_token_id"))
}

// applyTemplate makes each request the first question of its own conversation, if the model has a template.
func (c *chatPrompts) applyTemplate(requests []engine.Request) error {
	if c.template == nil {
		return nil
	}
	for i := range requests {
		r := &requests[i]
		prompt, err := chat.NewConversation(c.template).Ask(r.Text)
		if err != nil {
			return exit.Usage(err)
		}
		r.Text, r.Special = prompt, true
	}
	return nil
}

// runner returns a runner for one conversation on r. It calls note with remarks about a submitted question.
func (c *chatPrompts) runner(r engine.Runner, note func(words string)) engine.Runner {
	if c.template == nil {
		return r
	}
	sizer, _ := r.(sizer)
	return &dialogue{Runner: r, sizer: sizer, note: note, conversation: chat.NewConversation(c.template)}
}

// sizer returns the token count of a prompt and the size of the context.
type sizer interface {
	Size(ctx context.Context, text string) (tokens, context int, err error)
}

// sizeTimeout bounds a call of Size, since the screen may wait for it.
const sizeTimeout = time.Second

// newConversation before a question starts a new conversation.
const newConversation = "/new"

// dialogue is a runner for one conversation: each request is its next question, submitted with all earlier turns.
type dialogue struct {
	engine.Runner
	sizer sizer // nil: sizes are unknown
	note  func(words string)

	mu           sync.Mutex
	conversation *chat.Conversation
	answer       *engine.Handle // to the last question; nil once it is part of the conversation
}

// Submit implements engine.Runner. It refuses a question while the last one is being answered.
func (d *dialogue) Submit(r engine.Request) (*engine.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	question, fresh := strings.CutPrefix(r.Text, newConversation+" ")
	if strings.TrimSpace(r.Text) == newConversation {
		return nil, fmt.Errorf("start a conversation: type the first question after %s", newConversation)
	}
	if err := d.addAnswer(); err != nil {
		return nil, err
	}
	if fresh {
		d.conversation.Reset()
	}
	prompt, err := d.ask(question, r.MaxTokens)
	if err != nil {
		return nil, err
	}
	r.Text, r.Special = prompt, true
	h, err := d.Runner.Submit(r)
	d.answer = h
	return h, err
}

// ask returns the prompt of a question, with as many earlier turns as fit next to an answer of at most answer tokens
// (0: any length). When the context is full it drops the older half, so that the next questions find their turns in the
// KV cache. The caller holds mu.
func (d *dialogue) ask(question string, answer int) (prompt string, err error) {
	prompt, err = d.conversation.Ask(question)
	if err != nil || d.sizer == nil || len(d.conversation.Messages()) == 0 {
		return prompt, err
	}
	ctx, done := context.WithTimeout(context.Background(), sizeTimeout)
	defer done()
	size, room, err := d.sizer.Size(ctx, prompt)
	if err != nil { // Submit reports a better error
		return prompt, nil
	}
	if answer == 0 || answer > room/2 {
		answer = room / 2
	}
	if size+answer <= room {
		return prompt, nil
	}
	left, perByte := 0, float64(size)/float64(len(prompt))
	for size > room/2 && d.conversation.Drop() {
		left++
		if prompt, err = d.conversation.Ask(question); err != nil {
			return "", err
		}
		if size = int(perByte * float64(len(prompt))); size <= room/2 {
			if size, _, err = d.sizer.Size(ctx, prompt); err != nil {
				return prompt, nil
			}
		}
	}
	if left > 0 {
		d.note(omittedTurns(left, room))
	}
	return prompt, nil
}

// omittedTurns returns the note about n turns that were dropped from the conversation.
func omittedTurns(n, room int) string {
	what := fmt.Sprintf("the %d oldest questions and their answers are", n)
	if n == 1 {
		what = "the oldest question and its answer are"
	}
	return fmt.Sprintf("%s omitted: the conversation exceeds the context of %d tokens", what, room)
}

// addAnswer adds the last answer to the conversation. The caller holds mu.
func (d *dialogue) addAnswer() error {
	if d.answer == nil {
		return nil
	}
	select {
	case <-d.answer.Done():
	default:
		return errors.New("ask: the last question is still being answered; wait or cancel it")
	}
	if r := d.answer.Result(); r.State != event.StateFailed {
		d.conversation.Answer(r.Text)
	}
	d.answer = nil
	return nil
}
