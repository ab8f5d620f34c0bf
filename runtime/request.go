package runtime

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
)

// The ways in which a request is refused or fails through no fault of the engine; test for them with errors.Is.
var (
	ErrEmptyPrompt   = errors.New("the prompt is empty")
	ErrPromptTooLong = errors.New("the prompt does not fit the context")
	ErrUnknownToken  = errors.New("no such token")
	ErrQueueFull     = errors.New("the queue is full")
	ErrStopped       = errors.New("the scheduler has stopped")
)

// ErrBroken marks an error of Engine.Forward after which the engine cannot go on. After any other error only the requests
// that were in the batch fail.
var ErrBroken = errors.New("the engine is broken")

// Params are the choices of a sampler. The zero value is greedy.
type Params struct {
	Temperature   float64 // 0: the likeliest token, always
	TopK          int     // sample from the K likeliest; 0: all
	TopP          float64 // sample from the likeliest that hold this much probability; 0 and 1: all
	MinP          float64 // drop tokens less likely than this share of the likeliest; 0: none
	RepeatPenalty float64 // divide the logits of recent tokens by this; 0 and 1: off
	Seed          uint64
}

// Sampler picks the next token of one sequence.
type Sampler interface {
	// Sample picks from logits, which it may overwrite, given the sequence so far (oldest first), and returns the token
	// with the natural log of its probability.
	Sample(logits []float32, sequence []int32) (id int32, logp float32)
	// TopLogprobs appends the likeliest tokens, at most k, likeliest first. It is called before Sample.
	TopLogprobs(dst []event.TopProb, logits []float32, k int) []event.TopProb
}

// Request asks for text to be continued: either Text or IDs.
type Request struct {
	Text    string
	IDs     []int32 // the prompt as token ids, taken as they are
	Special bool    // control tokens spelled out in Text become their ids

	Label string // what kind of prompt
	Group string // LoRA adapter or tenant that its tokens are counted under
	Probe bool   // llmtop's own traffic

	Fresh     bool // all of the prompt is computed, whatever Options.Reuse would save
	MaxTokens int  // 0: until a token that ends the text, or a full context
	IgnoreEOS bool
	Params    Params

	SendText    bool // prompt and generated text go into the events
	TopLogprobs int  // alternatives per token in the events
	Picks       bool // expert picks per token in the events
}

// check refuses what can be refused without a tokenizer.
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

// Result is how a request ended.
type Result struct {
	event.Outcome
	State event.State
	IDs   []int32 // generated tokens, the one that ended the text included
	Text  string  // their pieces, without the one that ended the text
	Err   error   // why it failed; nil when finished or cancelled
}

// Handle is a submitted request.
type Handle struct {
	ID event.RequestID

	scheduler *Scheduler
	request   Request
	enqueued  event.Time
	cold      bool
	cancelled atomic.Bool
	cancel    func() // of a request that runs elsewhere; nil where scheduler runs it
	done      chan struct{}
	result    Result // written before done is closed
}

// Runner takes requests: a Scheduler, or what stands for one in another process.
type Runner interface {
	Submit(r Request) (*Handle, error)
	Cancel(id event.RequestID)
	SetPace(tokensPerSecond float64)
}

// NewHandle is the handle of a request that runs elsewhere, where cancel has it ended. end is to be called once, with how it ended.
func NewHandle(id event.RequestID, cancel func()) (h *Handle, end func(Result)) {
	h = &Handle{ID: id, cancel: cancel, done: make(chan struct{})}
	return h, func(r Result) {
		h.result = r
		close(h.done)
	}
}

// Done is closed when the request has ended.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Result waits for the end of the request and says how it ended.
func (h *Handle) Result() Result {
	<-h.done
	return h.result
}

// Cancel ends the request: at once while it waits in the queue, after the batch in progress when it runs.
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
		s.poke()
	}
}

// The reasons for which a request ends that did not fail.
const (
	reasonStop      = "stop"   // a token that ends the text
	reasonLength    = "length" // as many tokens as asked for, or a full context
	reasonCancelled = "cancelled"
)
