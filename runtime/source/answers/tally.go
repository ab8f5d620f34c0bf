package answers

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
)

// addTo adds the picks of a response, whose first prompt rows belong to the prompt, to the counts so far, and returns a copy
// of them. Responses do not contain the number of experts: it is the highest picked index plus 1. A different number of
// layers or picks means another model, and the counts restart.
func (p *Picks) addTo(c *event.Experts, prompt int) (*event.Experts, error) {
	if p.Used > 64 || p.Layers > 1024 {
		return nil, errors.New("count picks: too many layers or picks")
	}
	experts, row := 0, make([]uint16, p.Used)
	for i := range p.Tokens * p.Layers {
		if p.row(i/p.Layers, i%p.Layers, row) {
			for _, e := range row {
				experts = max(experts, int(e)+1)
			}
		}
	}
	if experts*p.Layers > maxCells {
		return nil, errors.New("count picks: too many experts")
	}
	p.shape(c, experts)
	for i := range p.Tokens * p.Layers {
		into := c.Decode
		if i/p.Layers < prompt {
			into = c.Prompt
		}
		if layer := i % p.Layers; p.row(i/p.Layers, layer, row) {
			for _, e := range row {
				into[layer*c.Experts+int(e)]++
			}
		}
	}
	n := uint64(min(max(prompt, 0), p.Tokens))
	c.PromptTokens += n
	c.DecodeTokens += uint64(p.Tokens) - n
	out := *c
	return &out, nil
}

// shape grows the counts to the number of experts, in a copy that no reader holds.
func (p *Picks) shape(c *event.Experts, experts int) {
	if c.Layers != p.Layers || c.Used != p.Used {
		*c = event.Experts{Layers: p.Layers, Used: p.Used}
	}
	n := max(experts, c.Experts)
	if n*c.Layers > maxCells { // bounded per response, not for both together
		n = experts
		*c = event.Experts{Layers: p.Layers, Used: p.Used}
	}
	wider := func(old []uint64) []uint64 {
		out := make([]uint64, c.Layers*n)
		for layer := range c.Layers {
			if len(old) > 0 {
				copy(out[layer*n:], old[layer*c.Experts:(layer+1)*c.Experts])
			}
		}
		return out
	}
	c.Prompt, c.Decode = wider(c.Prompt), wider(c.Decode)
	c.Experts = n
}
