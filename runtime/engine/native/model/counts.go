package model

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// counts holds the router's picks since load. Only worker 0 writes them; Router reads them between batches.
type counts struct {
	prompt, decode             []uint64 // [layer][expert]
	promptTokens, decodeTokens uint64
}

func newCounts(layers, experts int) *counts {
	return &counts{prompt: make([]uint64, layers*experts), decode: make([]uint64, layers*experts)}
}

// count adds the picks of a layer, if counting is on.
func (r *Runner) count(l *lane, layer int) {
	if r.Dense() {
		return
	}
	if r.hooks.Experts {
		prompt, decode := r.counts.prompt[layer*r.Experts:][:r.Experts], r.counts.decode[layer*r.Experts:][:r.Experts]
		for i := range r.batch.Rows {
			to, tokens := decode, &r.counts.decodeTokens
			if r.batch.Rows[i].Prompt {
				to, tokens = prompt, &r.counts.promptTokens
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
func (r *Runner) Router() *event.Experts {
	if r.counts == nil {
		return nil
	}
	return &event.Experts{
		Layers: r.Layers, Experts: r.Experts, Used: r.Used,
		Prompt: slices.Clone(r.counts.prompt), Decode: slices.Clone(r.counts.decode),
		PromptTokens: r.counts.promptTokens, DecodeTokens: r.counts.decodeTokens,
	}
}
