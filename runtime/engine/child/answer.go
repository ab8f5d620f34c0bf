package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

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

// answers splits the child's standard output: answers go to the waiting callers, the rest to the log.
type answers struct {
	log io.Writer

	mu        sync.Mutex // guards the fields below
	part      []byte     // incomplete answer
	inAnswer  bool       // part belongs to an answer
	lineStart bool       // the last byte was a line feed, or nothing has been written
	last      uint64     // last call number in use
	waiting   map[uint64]chan answer
}

func newAnswers(log io.Writer) *answers {
	return &answers{log: log, lineStart: true, waiting: make(map[uint64]chan answer)}
}

// Write implements io.Writer.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range bytes.SplitAfter(p, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if a.lineStart && line[0] == mark[1] {
			a.inAnswer, line = true, line[1:]
		}
		a.lineStart = bytes.HasSuffix(line, []byte{'\n'})
		if !a.inAnswer {
			_, _ = a.log.Write(line) // never fails
			continue
		}
		a.part = append(a.part, line[:min(len(line), maxAnswer-len(a.part))]...)
		if a.lineStart {
			a.deliver()
		}
	}
	return len(p), nil
}

// deliver passes an answer to its waiting caller. The caller holds mu.
func (a *answers) deliver() {
	var got answer
	if json.Unmarshal(a.part, &got) == nil && a.waiting[got.Call] != nil {
		a.waiting[got.Call] <- got // buffered, so it does not block
		delete(a.waiting, got.Call)
	}
	a.part, a.inAnswer = nil, false
}

// register registers a call and returns the channel for its answer.
func (a *answers) register() (call uint64, from chan answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	from = make(chan answer, 1)
	a.waiting[a.last] = from
	return a.last, from
}

// unregister unregisters a call.
func (a *answers) unregister(call uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, call)
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
	call, from := p.answers.register()
	ask.Call = call
	defer p.answers.unregister(call)
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
