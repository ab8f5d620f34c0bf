package engine

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// maxCompared bounds the prompts that are compared with earlier ones, in bytes.
const maxCompared = 1 << 20

// promptHistory compares prompts with those of requests that have finished. It keeps hashes of them, no text.
type promptHistory struct {
	mu      sync.Mutex
	history *prompts.History // nil: prompts are not reused
}

// comparison is a prompt and what it has in common with an earlier one.
type comparison struct {
	print *prompts.Print
	reuse event.Reuse
}

// begin compares the prompt of a request that is dispatched, beside the engine: the request waits for the result at its
// end.
func (p *promptHistory) begin(h *Handle) {
	text := h.request.Text
	if p.history == nil || h.request.Fresh || text == "" || len(text) > maxCompared {
		return
	}
	compared := make(chan comparison, 1)
	h.compared = compared
	go func() {
		units := prompts.Lines(text)
		p.mu.Lock()
		defer p.mu.Unlock()
		var c comparison
		c.print, c.reuse = p.history.Compare("", units)
		compared <- c
	}()
}

// end returns what the prompt of a request has in common with an earlier one, and remembers it if the request has
// finished.
func (p *promptHistory) end(h *Handle, state event.State) event.Reuse {
	if h.compared == nil {
		return event.Reuse{}
	}
	c := <-h.compared
	if state == event.StateFinished {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.history.Keep(h.ID, c.print)
	}
	return c.reuse
}
