package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/llmtop/llmtop/runtime"
)

// change is a line that the parent writes after the first one.
type change struct {
	Pace   *float64  `json:"pace,omitempty"`
	Encode *question `json:"encode,omitempty"`
	Size   *question `json:"size,omitempty"`
}

// question asks for the token ids of a text, or for how many they are.
type question struct {
	Call uint64 `json:"call"`
	Text string `json:"text,omitempty"`
}

// answer is a line that the child writes to its standard output, between mark and a line end. Whatever else stands there is log.
type answer struct {
	Call    uint64  `json:"call"`
	IDs     []int32 `json:"ids,omitempty"`
	Tokens  int     `json:"tokens,omitempty"`
	Context int     `json:"context,omitempty"` // tokens that a request may hold
	Error   string  `json:"error,omitempty"`
}

// mark begins an answer: no text has it, and the line end before it ends what a library may have left.
var mark = []byte("\n\x00")

// maxAnswer is how long an answer may be, in bytes.
const maxAnswer = 64 << 20

// write writes the answer.
func (a *answer) write(out io.Writer) {
	line, err := json.Marshal(a)
	if err == nil {
		_, _ = out.Write(append(append(bytes.Clone(mark), line...), '\n')) // fails if the parent is gone
	}
}

// answers takes the child's standard output: answers go to who waits for them, the rest to the log.
type answers struct {
	log io.Writer

	mu      sync.Mutex // guards what follows
	part    []byte     // of an answer whose end has not come
	within  bool       // an answer
	fresh   bool       // the last byte was a line end, or there was none
	last    uint64     // call
	waiting map[uint64]chan answer
}

func newAnswers(log io.Writer) *answers {
	return &answers{log: log, fresh: true, waiting: make(map[uint64]chan answer)}
}

// Write implements io.Writer.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range bytes.SplitAfter(p, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if a.fresh && line[0] == mark[1] {
			a.within, line = true, line[1:]
		}
		a.fresh = bytes.HasSuffix(line, []byte{'\n'})
		if !a.within {
			_, _ = a.log.Write(line) // never fails
			continue
		}
		a.part = append(a.part, line[:min(len(line), maxAnswer-len(a.part))]...)
		if a.fresh {
			a.deliver()
		}
	}
	return len(p), nil
}

// deliver hands an answer to who waits for it. The caller holds mu.
func (a *answers) deliver() {
	var got answer
	if json.Unmarshal(a.part, &got) == nil && a.waiting[got.Call] != nil {
		a.waiting[got.Call] <- got // has room for it
		delete(a.waiting, got.Call)
	}
	a.part, a.within = nil, false
}

// expect is where an answer will come.
func (a *answers) expect() (call uint64, from chan answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	from = make(chan answer, 1)
	a.waiting[a.last] = from
	return a.last, from
}

// forget says that an answer is not waited for any more.
func (a *answers) forget(call uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, call)
}

// Encode turns text into the loaded model's token ids, with the tokens that it wants in front. It waits until the model is loaded. Errors: that
// of ctx, runtime.ErrStopped, those of the engine.
func (p *Process) Encode(ctx context.Context, text string) ([]int32, error) {
	got, err := p.call(ctx, func(call uint64) change { return change{Encode: &question{call, text}} })
	switch {
	case errors.Is(err, runtime.ErrStopped):
		return nil, fmt.Errorf("encode text: %w", err)
	case err != nil:
		return nil, err
	}
	return got.IDs, nil
}

// Size is how many tokens a text takes as the prompt of a request with Special, and how many the context of a request holds. It waits until the
// model is loaded. Errors: that of ctx, runtime.ErrStopped.
func (p *Process) Size(ctx context.Context, text string) (tokens, context int, err error) {
	got, err := p.call(ctx, func(call uint64) change { return change{Size: &question{call, text}} })
	if err != nil {
		return 0, 0, fmt.Errorf("count tokens: %w", err)
	}
	return got.Tokens, got.Context, nil
}

// call sends a question and waits for the answer.
func (p *Process) call(ctx context.Context, ask func(call uint64) change) (answer, error) {
	call, from := p.answers.expect()
	defer p.answers.forget(call)
	if err := p.tell(ask(call)); err != nil {
		return answer{}, errors.Join(runtime.ErrStopped, err)
	}
	select {
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-p.exited:
		return answer{}, runtime.ErrStopped
	case got := <-from:
		if got.Error != "" {
			return answer{}, failure(got.Error)
		}
		return got, nil
	}
}

// encode answers a question.
func encode(ctx context.Context, s *runtime.Scheduler, q question, out io.Writer) {
	a := answer{Call: q.Call}
	ids, err := s.Encode(ctx, q.Text)
	if err != nil {
		a.Error = err.Error()
	}
	a.IDs = ids
	a.write(out)
}

// size answers a question.
func size(ctx context.Context, s *runtime.Scheduler, q question, out io.Writer) {
	a := answer{Call: q.Call}
	var err error
	if a.Tokens, a.Context, err = s.Size(ctx, q.Text); err != nil {
		a.Error = err.Error()
	}
	a.write(out)
}
