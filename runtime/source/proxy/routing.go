package proxy

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/routed"
)

// route records the expert picks of a message; the first message with picks counts.
func (f *fact) route(text blob, answers int) {
	if f.routed == "" && text != "" {
		f.routed, f.answers = string(text), answers
	}
}

// errNoUsage means that picks cannot be counted because the prompt's share is unknown.
var errNoUsage = errors.New("the answer has no token usage, so prompt and output picks cannot be separated")

// rows returns how many tokens an answer has picks for, and how many of them are prompt tokens: all tokens but the
// last, without those at the beginning that the client did not request. reported is the number of tokens in the
// answer's picks, 0 if unknown.
func (f *fact) rows(reported int) (rows, prompt int) {
	rows = f.prompt + f.generated - 1
	if reported == 0 || reported > rows || f.answers > 1 {
		return rows, f.prompt
	}
	return reported, max(f.prompt-(rows-reported), 0)
}

// uncountedPicks returns the warning for picks that were not counted.
func uncountedPicks(why error) warning {
	const words = "expert picks in answers were not counted: "
	switch {
	case errors.Is(why, errNoUsage):
		return warning(words + errNoUsage.Error())
	case errors.Is(why, routed.ErrShape):
		return words + "set --experts-used to the number of experts per token"
	}
	return words + "unknown format"
}

// picks counts the expert picks of a completed answer.
func (x *exchange) picks(f *fact) error {
	if f.routed == "" {
		return nil
	}
	if f.prompt == 0 || f.generated == 0 {
		return errNoUsage
	}
	rows, _ := f.rows(0)
	p, err := routed.Decode([]byte(f.routed), x.proxy.opt.ExpertsUsed, rows)
	if err != nil {
		return err
	}
	_, prompt := f.rows(p.Tokens)
	counts, err := x.proxy.picks.Add(p, prompt)
	if err != nil {
		return err
	}
	x.proxy.link.can(event.CapExperts)
	x.proxy.sink.Emit(event.Event{Kind: event.KindExperts, At: x.proxy.opt.Clock.Now(), Layer: -1, Data: counts})
	return nil
}
