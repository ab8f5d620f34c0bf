package model

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// count adds the picks of a layer, if counting is on.
func (r *Runner) count(l *lane, layer int) {
	if r.Dense() {
		return
	}
	if r.hooks.Experts {
		prompt, decode := r.counts.Prompt[layer*r.Experts:][:r.Experts], r.counts.Decode[layer*r.Experts:][:r.Experts]
		for i := range r.batch.Rows {
			to, tokens := decode, &r.counts.DecodeTokens
			if r.batch.Rows[i].Prompt {
				to, tokens = prompt, &r.counts.PromptTokens
			}
			for _, e := range l.picks[i*r.Used : (i+1)*r.Used] {
				to[e]++
			}
			if layer == 0 {
				*tokens++
			}
		}
	}
	if r.hooks.Picks {
		for i := range r.n {
			at := (i*r.Layers + layer) * r.Used
			for rank, e := range l.picks[i*r.Used : (i+1)*r.Used] {
				r.chosen[at+rank] = uint16(e)
			}
		}
	}
}

// Router returns a copy of the picks counted since load, nil for a dense model.
func (r *Runner) Router() *event.Experts { return engine.CopyPicks(r.counts) }
