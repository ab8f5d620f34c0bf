package proxy

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// promptHistory compares prompts with earlier ones. It keeps hashes of them, no text.
type promptHistory struct {
	mu      sync.Mutex
	history *prompts.History
}

// add compares the prompt of a request body with earlier ones; the zero value if none begins like it, or if the body
// cannot be read.
func (p *promptHistory) add(id event.RequestID, model string, body []byte) event.Reuse {
	units, err := prompts.Units(body)
	if err != nil || len(units) == 0 {
		return event.Reuse{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, _ := p.history.Add(id, model, units)
	return b
}
