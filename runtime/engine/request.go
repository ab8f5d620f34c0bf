package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// Errors of requests that are rejected or fail although the engine works; test for them with errors.Is.
var (
	ErrEmptyPrompt   = errors.New("the prompt is empty")
	ErrPromptTooLong = errors.New("the prompt does not fit the context")
	ErrUnknownToken  = errors.New("no such token")
	ErrQueueFull     = errors.New("the queue is full")
	ErrStopped       = errors.New("the scheduler has stopped")
)

// ErrNoTokenizer means that a server accepts no token ids or has no tokenizer endpoint.
var ErrNoTokenizer = errors.New("the server has no tokenizer endpoint, or accepts no token ids")

// ErrBroken marks an error of Engine.Forward after which the engine cannot continue. Any other error fails only the
// requests in the batch.
var ErrBroken = errors.New("the engine is broken")

// Params configures a sampler. The zero value samples greedily.
type Params struct {
	Temperature   float64 // 0: always take the likeliest token
	TopK          int     // sample from the K likeliest; 0: all
	TopP          float64 // sample from the likeliest tokens that together have this probability; 0 and 1: all
	MinP          float64 // drop tokens less likely than this fraction of the likeliest; 0: none
	RepeatPenalty float64 // divide the logits of recent tokens by this; 0 and 1: off
	Seed          uint64
}

// Sampler picks the next token of one sequence.
type Sampler interface {
	// Sample picks from logits, which it may overwrite, given the sequence so far (oldest first). It returns the token
	// and the natural log of its probability.
	Sample(logits []float32, sequence []int32) (id int32, logp float32)
	// TopLogprobs appends the k likeliest tokens, likeliest first. It is called before Sample.
	TopLogprobs(dst []event.TopProb, logits []float32, k int) []event.TopProb
}

// Request is a prompt to continue: either Text or IDs.
type Request struct {
	Text    string
	IDs     []int32 // the prompt as token ids, used unchanged
	Special bool    // control tokens spelled out in Text become their ids

	Label string // prompt kind
	Group string // LoRA adapter or tenant that the tokens are counted under
	Probe bool   // sent by llmtop itself

	Fresh     bool // compute the whole prompt even if Options.Reuse is set
	MaxTokens int  // 0: until a token that ends the text, or the context is full
	IgnoreEOS bool
	Params    Params

	SendText    bool // include prompt and generated text in events
	TopLogprobs int  // number of alternatives per token in events
	Picks       bool // include expert picks per token in events
}

// check validates what can be validated without a tokenizer.
func (r *Request) check() error {
	switch {
	case r.Text == "" && len(r.IDs) == 0:
		return ErrEmptyPrompt
	case r.MaxTokens < 0:
		return fmt.Errorf("%d tokens to generate: must be 0 or more", r.MaxTokens)
	case r.TopLogprobs < 0:
		return fmt.Errorf("%d alternatives per token: must be 0 or more", r.TopLogprobs)
	}
	return nil
}

// Result is the outcome of a request.
type Result struct {
	event.Outcome
	State event.State
	IDs   []int32 // generated tokens, including the one that ended the text
	Text  string  // their text, without the token that ended it
	Err   error   // why it failed; nil when finished or cancelled
}

// Handle is a submitted request.
type Handle struct {
	ID event.RequestID

	scheduler *Scheduler
	request   Request
	enqueued  event.Time
	cold      bool
	paced     event.Time // part of the wait in the queue in which the engine waited on purpose; guarded by scheduler.mu
	cancelled atomic.Bool
	cancel    func() // cancels a request that runs in another process; nil if scheduler runs it
	done      chan struct{}
	result    Result // written before done is closed

	compared <-chan *prompts.Print // of the prompt; nil: it is not compared
}

// Runner accepts requests: a Scheduler, or a client of one in another process.
type Runner interface {
	Submit(r Request) (*Handle, error)
	Cancel(id event.RequestID)
	SetPace(tokensPerSecond float64)
}

// NewHandle returns the handle of a request that runs in another process. cancel ends it there; end must be called
// once, with the result.
func NewHandle(id event.RequestID, cancel func()) (h *Handle, end func(Result)) {
	h = &Handle{ID: id, cancel: cancel, done: make(chan struct{})}
	return h, func(r Result) {
		h.result = r
		close(h.done)
	}
}

// Done is closed when the request has ended.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Result waits for the end of the request and returns its result.
func (h *Handle) Result() Result {
	<-h.done
	return h.result
}

// Cancel ends the request: at once if it is queued, after the current batch if it runs.
func (h *Handle) Cancel() {
	if h.cancel != nil {
		h.cancel()
		return
	}
	s := h.scheduler
	s.mu.Lock()
	i := slices.Index(s.queue, h)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.finish(h, Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: reasonCancelled}})
	}
	s.mu.Unlock()
	if i < 0 {
		h.cancelled.Store(true)
		s.wakeDriver()
	}
}

// cancelTimeout is how long CancelAll waits: a forward pass may be long, and a process may hang.
const cancelTimeout = 5 * time.Second

// CancelAll cancels the requests that have not ended, and waits for their ends, up to cancelTimeout.
func CancelAll(handles []*Handle) {
	timeout := time.After(cancelTimeout)
	for _, h := range handles {
		select {
		case <-h.done:
		default:
			h.Cancel()
		}
	}
	for _, h := range handles {
		select {
		case <-h.done:
		case <-timeout:
			return
		}
	}
}

// Reasons of requests that ended without failing.
const (
	reasonStop      = "stop"   // a token that ends the text was generated
	reasonLength    = "length" // MaxTokens were generated or the context is full
	reasonCancelled = "cancelled"
)
