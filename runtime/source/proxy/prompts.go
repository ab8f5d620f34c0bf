package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// Bounds of the request bodies whose prompts are compared with earlier ones, in bytes.
const (
	maxCompared = 1 << 20  // of one request
	maxHeld     = 64 << 20 // of all requests that are not compared yet
)

// promptHistory compares prompts with those of requests that have finished. It keeps hashes of them, no text.
type promptHistory struct {
	held    atomic.Int64 // bytes of bodies that are not compared yet
	mu      sync.Mutex   // guards history, and lets one body be parsed at a time
	history *prompts.History
}

// comparison is a prompt, nil if the body cannot be read, and what it has in common with an earlier one.
type comparison struct {
	print *prompts.Print
	reuse event.Reuse
}

func (p *promptHistory) compare(model string, body []byte) (c comparison) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if units, err := prompts.Units(body); err == nil && len(units) > 0 {
		c.print, c.reuse = p.history.Compare(model, units)
	}
	return c
}

func (p *promptHistory) keep(id event.RequestID, q *prompts.Print) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.Keep(id, q)
}

// hold adds to the text that is compared. The caller holds mu.
func (x *exchange) hold(body []byte) {
	if x.long {
		return
	}
	held := &x.proxy.prompts.held
	x.text = append(x.text, body...)
	if held.Add(int64(len(body))) > maxHeld || len(x.text) > maxCompared {
		held.Add(-int64(len(x.text)))
		x.text, x.long = nil, true
	}
}

// compare compares the prompt with earlier ones on another goroutine, which drops its text. The caller holds mu.
func (x *exchange) compare() {
	text, model := x.text, x.model
	if x.text = nil; len(text) == 0 {
		return
	}
	x.prompt = make(chan comparison, 1)
	x.proxy.observers.Go(func() {
		defer x.proxy.prompts.held.Add(-int64(len(text)))
		x.prompt <- x.proxy.prompts.compare(model, text)
	})
}
