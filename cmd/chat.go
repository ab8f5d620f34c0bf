package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/chat"
	"github.com/llmtop/llmtop/runtime/native/gguf"
)

// chatting is how the prompts of a run become those of its model.
type chatting struct {
	template *chat.Template // nil: they are continued as they are
	words    string         // which of both, for the header; "" for the built-in model, which is never asked
}

// begin finds out whether the model holds conversations. A file that cannot be read is left to the engine, which says best what is wrong.
func (c *chatting) begin(model string, raw bool) {
	switch {
	case model == "":
		return
	case raw:
		c.words = "plain (--raw)"
		return
	}
	template, err := readTemplate(model)
	c.template = template
	switch {
	case err == nil:
		c.words = "chat"
	case errors.Is(err, chat.ErrNoTemplate):
		c.words = "plain"
	default:
		c.words = "plain: " + err.Error()
	}
}

// readTemplate reads the chat template in a model's file, with the texts of the tokens that it may name.
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
	tokens, _ := f.Metadata.Strings("tokenizer.ggml.tokens") // an engine without them refuses the file
	text := func(key string) string {
		id, err := f.Metadata.Uint("tokenizer.ggml." + key)
		if err != nil || id >= uint64(len(tokens)) {
			return ""
		}
		return tokens[id]
	}
	return chat.New(source, text("bos_token_id"), text("eos_token_id"))
}

// askAll makes each request the first question of a conversation of its own, for a model that holds any.
func (c *chatting) askAll(requests []runtime.Request) error {
	if c.template == nil {
		return nil
	}
	for i := range requests {
		r := &requests[i]
		prompt, err := chat.NewConversation(c.template, "").Ask(r.Text)
		if err != nil {
			return usageError{err}
		}
		r.Text, r.Special = prompt, true
	}
	return nil
}

// runner is r for a user who asks one thing after the other. note is told what the user should know of a question that was submitted.
func (c *chatting) runner(r runtime.Runner, note func(words string)) runtime.Runner {
	if c.template == nil {
		return r
	}
	sizer, _ := r.(sizer)
	return &dialogue{Runner: r, sizer: sizer, note: note, said: chat.NewConversation(c.template, "")}
}

// sizer knows how much of the context a prompt takes.
type sizer interface {
	Size(ctx context.Context, text string) (tokens, context int, err error)
}

// sizePatience is how long is waited for it, since a screen may wait, too.
const sizePatience = time.Second

// newConversation before a question forgets what was said before.
const newConversation = "/new"

// dialogue is a runner of a conversation: each request is its next question, and its text the whole of what was said.
type dialogue struct {
	runtime.Runner
	sizer sizer // nil: nobody knows
	note  func(words string)

	mu     sync.Mutex
	said   *chat.Conversation
	answer *runtime.Handle // to the last question; nil once it is in the conversation
}

// Submit implements runtime.Runner. A question while the last one is being answered is refused.
func (d *dialogue) Submit(r runtime.Request) (*runtime.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	question, anew := strings.CutPrefix(r.Text, newConversation+" ")
	if strings.TrimSpace(r.Text) == newConversation {
		return nil, fmt.Errorf("start a conversation: type the first question behind %s", newConversation)
	}
	if err := d.hear(); err != nil {
		return nil, err
	}
	if anew {
		d.said.Reset()
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

// ask makes the prompt of a question, with as much of what was said before as leaves room for an answer of so many tokens; 0 is for
// any length. Once the context is full the older half goes, so that the next questions find theirs in the KV cache again. The caller
// holds mu.
func (d *dialogue) ask(question string, answer int) (prompt string, err error) {
	prompt, err = d.said.Ask(question)
	if err != nil || d.sizer == nil || len(d.said.Messages()) == 0 {
		return prompt, err
	}
	ctx, done := context.WithTimeout(context.Background(), sizePatience)
	defer done()
	size, room, err := d.sizer.Size(ctx, prompt)
	if err != nil { // which Submit says better
		return prompt, nil
	}
	if answer == 0 || answer > room/2 {
		answer = room / 2
	}
	if size+answer <= room {
		return prompt, nil
	}
	left, perByte := 0, float64(size)/float64(len(prompt))
	for size > room/2 && d.said.Drop() {
		left++
		if prompt, err = d.said.Ask(question); err != nil {
			return "", err
		}
		if size = int(perByte * float64(len(prompt))); size <= room/2 {
			if size, _, err = d.sizer.Size(ctx, prompt); err != nil {
				return prompt, nil
			}
		}
	}
	if left > 0 {
		d.note(leftOut(left, room))
	}
	return prompt, nil
}

// leftOut says how many of the oldest questions a conversation goes on without.
func leftOut(n, room int) string {
	what := fmt.Sprintf("%d oldest questions and their answers are", n)
	if n == 1 {
		what = "the oldest question and its answer are"
	}
	return fmt.Sprintf("%s left out: the conversation has outgrown the context of %d tokens", what, room)
}

// hear takes the last answer into the conversation. The caller holds mu.
func (d *dialogue) hear() error {
	if d.answer == nil {
		return nil
	}
	select {
	case <-d.answer.Done():
	default:
		return errors.New("ask: the last question is still being answered; wait or cancel it")
	}
	if r := d.answer.Result(); r.State != event.StateFailed {
		d.said.Answer(r.Text)
	}
	d.answer = nil
	return nil
}
