//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// counts holds the router's picks since load, in the passes that were sampled.
type counts struct {
	experts                    int
	prompt, decode             []uint64 // [layer][expert]
	promptTokens, decodeTokens uint64
}

func newCounts(s shape) *counts {
	return &counts{experts: s.experts, prompt: make([]uint64, s.layers*s.experts), decode: make([]uint64, s.layers*s.experts)}
}

// add counts one pick.
func (c *counts) add(prompt bool, layer, expert int) {
	to := c.decode
	if prompt {
		to = c.prompt
	}
	to[layer*c.experts+expert]++
}

// pass counts the tokens of a sampled pass.
func (c *counts) pass(rows []engine.Row) {
	for i := range rows {
		if rows[i].Prompt {
			c.promptTokens++
		} else {
			c.decodeTokens++
		}
	}
}

// snapshot returns a copy of the counts.
func (c *counts) snapshot(s shape, every int) *event.Experts {
	return &event.Experts{
		Layers: s.layers, Experts: s.experts, Used: s.used, EveryN: every,
		Prompt: slices.Clone(c.prompt), Decode: slices.Clone(c.decode), PromptTokens: c.promptTokens, DecodeTokens: c.decodeTokens,
	}
}
