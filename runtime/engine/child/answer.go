package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// change is any line from the parent after the first one.
type change struct {
	Pace *float64 `json:"pace,omitempty"`

	Call uint64 `json:"call,omitempty"` // asks for the token ids of Text; 0: no question
	Text string `json:"text,omitempty"`
	Size bool   `json:"size,omitempty"` // asks for their number instead
}

// answer is a line that the child writes to its standard output, between mark and a line feed. All other output is log.
type answer struct {
	Call    uint64  `json:"call"`
	IDs     []int32 `json:"ids,omitempty"`
	Tokens  int     `json:"tokens,omitempty"`
	Context int     `json:"context,omitempty"` // context size of a request, in tokens
	Error   string  `json:"error,omitempty"`
}

// mark starts an answer. Log text does not contain it; its line feed ends a line that a library may have left
// incomplete.
var mark = []byte("\n\x00")

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 64 << 20

// write writes the answer.
func (a *answer) write(out io.Writer) {
	line, err := json.Marshal(a)
	if err == nil {
		_, _ = out.Write(append(append(bytes.Clone(mark), line...), '\n')) // fails if the parent has exited
	}
}

// answered passes an answer to its waiting caller.
func (p *Process) answered(line []byte) {
	var got answer
	if json.Unmarshal(line, &got) != nil {
		return
	}
	if from, ok := p.waiting.LoadAndDelete(got.Call); ok {
		from.(chan answer) <- got // buffered, so it does not block
	}
}

// Encode converts text to token ids of the loaded model, with the tokens that the model requires in front. It waits
// until the model is loaded. Errors: that of ctx, engine.ErrStopped, those of the engine.
func (p *Process) Encode(ctx context.Context, text string) ([]int32, error) {
	got, err := p.call(ctx, change{Text: text})
	switch {
	case errors.Is(err, engine.ErrStopped):
		return nil, fmt.Errorf("encode text: %w", err)
	case err != nil:
		return nil, err
	}
	return got.IDs, nil
}

// Size returns the number of tokens of text as the prompt of a request with Special set, and the context size of a
// request. It waits until the model is loaded. Errors: that of ctx, engine.ErrStopped.
func (p *Process) Size(ctx context.Context, text string) (tokens, context int, err error) {
	got, err := p.call(ctx, change{Text: text, Size: true})
	if err != nil {
		return 0, 0, fmt.Errorf("count tokens: %w", err)
	}
	return got.Tokens, got.Context, nil
}

// call sends a question and waits for its answer.
func (p *Process) call(ctx context.Context, ask change) (answer, error) {
	from := make(chan answer, 1)
	ask.Call = p.calls.Add(1)
	p.waiting.Store(ask.Call, from)
	defer p.waiting.Delete(ask.Call)
	if err := p.send(ask); err != nil {
		return answer{}, errors.Join(engine.ErrStopped, err)
	}
	select {
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-p.exited:
		return answer{}, engine.ErrStopped
	case got := <-from:
		if got.Error != "" {
			return answer{}, socket.ParseError(got.Error)
		}
		return got, nil
	}
}

// SetPace implements engine.Runner.
func (p *Process) SetPace(tokensPerSecond float64) {
	_ = p.send(change{Pace: &tokensPerSecond}) // fails if the engine has ended, which does not matter
}

// reply answers a question.
func (c *change) reply(ctx context.Context, s *engine.Scheduler, out io.Writer) {
	a := answer{Call: c.Call}
	var err error
	if c.Size {
		a.Tokens, a.Context, err = s.Size(ctx, c.Text)
	} else {
		a.IDs, err = s.Encode(ctx, c.Text)
	}
	if err != nil {
		a.Error = err.Error()
	}
	a.write(out)
}
