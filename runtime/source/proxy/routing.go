package proxy

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// errNoUsage means that picks cannot be counted because the prompt's share is unknown.
var errNoUsage = errors.New("the answer has no token usage, so prompt and output picks cannot be separated")

// pickedRows returns how many tokens an answer has picks for, and how many of them are prompt tokens: all tokens but the
// last, without those at the beginning that the client did not request. reported is the number of tokens in the
// answer's picks, 0 if unknown.
func pickedRows(sum *answers.Message, reported int) (rows, prompt int) {
	rows = sum.Prompt + sum.Generated - 1
	if reported == 0 || reported > rows || sum.Answers > 1 {
		return rows, sum.Prompt
	}
	return reported, max(sum.Prompt-(rows-reported), 0)
}

// uncountedPicks returns the warning for picks that were not counted.
func uncountedPicks(why error) warning {
	const words = "expert picks in answers were not counted: "
	switch {
	case errors.Is(why, errNoUsage):
		return warning(words + errNoUsage.Error())
	case errors.Is(why, answers.ErrShape):
		return words + "set --experts-used to the number of experts per token"
	}
	return words + "unknown format"
}

// picks counts the expert picks of a completed answer.
func (x *exchange) picks(sum *answers.Message) error {
	if sum.Routed == "" {
		return nil
	}
	if sum.Prompt == 0 || sum.Generated == 0 {
		return errNoUsage
	}
	rows, _ := pickedRows(sum, 0)
	p, err := answers.DecodePicks([]byte(sum.Routed), x.proxy.opt.ExpertsUsed, rows)
	if err != nil {
		return err
	}
	_, prompt := pickedRows(sum, p.Tokens)
	x.proxy.picking.Lock()
	defer x.proxy.picking.Unlock()
	counts, err := x.proxy.picks.Add(p, prompt)
	if err != nil {
		return err
	}
	x.proxy.link.can(event.CapExperts)
	x.proxy.sink.Emit(event.Event{Kind: event.KindExperts, At: x.proxy.opt.Clock.Now(), Layer: -1, Data: counts})
	return nil
}
