package engine

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// maxCompared bounds the prompts that are compared with earlier ones, in bytes.
const maxCompared = 1 << 20

// compare compares the prompt of a request that is dispatched, beside the engine: the request waits for the result at its
// end.
func (s *Scheduler) compare(h *Handle) {
	text := h.request.Text
	if s.prompts == nil || h.request.Fresh || text == "" || len(text) > maxCompared {
		return
	}
	compared := make(chan *prompts.Print, 1)
	h.compared = compared
	go func() { compared <- s.prompts.Compare("", func() []prompts.Unit { return prompts.Lines(text) }) }()
}

// reuseOf returns what the prompt of a request has in common with an earlier one, and remembers it if the request has
// finished.
func (s *Scheduler) reuseOf(h *Handle, state event.State) event.Reuse {
	if h.compared == nil {
		return event.Reuse{}
	}
	p := <-h.compared
	if state == event.StateFinished {
		s.prompts.Keep(h.ID, p)
	}
	return p.Reuse
}
